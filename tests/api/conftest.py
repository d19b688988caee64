"""An index to ask with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def index(questree: Callable[..., Any], workplace: Path) -> Path:
    """A BM25 index of the mini set."""
    from questree.data import load_task

    ran = questree("index", load_task("mini").corpus, "--out", "index", "--kind", "bm25")
    assert ran.code == 0, ran.err
    return workplace / "index"
