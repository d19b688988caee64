"""The command line, run as a user would, in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from questree.cli import main


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def questree(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run a command; its words are the arguments."""

    def run(*words: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["questree", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Ran(int(end.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def index(questree: Callable[..., Ran], workplace: Path) -> Path:
    """A BM25 index of the mini set."""
    from questree.data import load_task

    ran = questree("index", load_task("mini").corpus, "--out", "index", "--kind", "bm25")
    assert ran.code == 0, ran.err
    return workplace / "index"
