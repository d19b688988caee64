"""The notebooks of `examples/` run as they stand, and nothing of a run is kept in them."""

from __future__ import annotations

import json

import nbformat
import pytest
from house import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SHOWN = {
    "ask_and_read_a_tree": ["<b>searchain</b>", "Liffey", "●", "done"],
    "compile_and_compare": ["before: 100%|", "direct: 100%|", "<b>searchain</b>", "<table>", "searchain, compiled"],
    "track_and_load": ["runs:/", "<b>oner</b>", "expected_response", "by-style/mean"],
}

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@notebooks
def test_a_notebook_runs_and_shows_what_it_says(path, tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "dspy"))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    told = json.dumps([cell.get("outputs", []) for cell in notebook.cells], ensure_ascii=False)
    assert [text for text in SHOWN[path.stem] if text not in told] == []


@notebooks
def test_a_notebook_holds_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
