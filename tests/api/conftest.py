"""An index to ask with."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _untracked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are tracked where a test says so."""
    monkeypatch.setenv("QUESTREE_TRACKING_URI", "none")


@pytest.fixture
def index(made_offline: Path, workplace: Path) -> Path:
    """A BM25 index of the mini set."""
    return shutil.copytree(made_offline / "indexes" / "mini", workplace / "index")
