"""An index to ask with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def _index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from questree.cli import app
    from questree.data import MINI_CORPUS

    folder = tmp_path_factory.mktemp("indexes") / "index"
    app(["index", str(MINI_CORPUS), "--out", str(folder), "--kind", "bm25"], standalone_mode=False)
    return folder


@pytest.fixture
def index(_index: Path, workplace: Path) -> Path:
    """A BM25 index of the mini set, as the command makes it."""
    return shutil.copytree(_index, workplace / "index")
