"""The notebooks of `examples/` run as they stand, and nothing of a run is kept in them."""

import json

import nbformat
import pytest
from house import ROOT
from nbclient import NotebookClient
from test_guides import unknown_names

SHOWN = {
    "ask_and_read_a_tree": ["<b>searchain</b>", "Liffey", "●", "done"],
    "compile_and_compare": ["before: 100%|", "direct: 100%|", "<b>searchain</b>", "<table>", "searchain, compiled"],
    "track_and_load": ["runs:/", "<b>oner</b>", "expected_response", "by-style/mean"],
}
SLOW = {"compile_and_compare", "track_and_load"}  # each is a process that compiles, or that makes MLflow's store


def notebook(name: str):
    return nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SHOWN]
)
def test_a_notebook_runs_and_shows_what_it_says(name, tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "dspy"))
    ran = notebook(name)
    NotebookClient(ran, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    told = json.dumps([cell.get("outputs", []) for cell in ran.cells], ensure_ascii=False)
    assert [text for text in SHOWN[name] if text not in told] == []
    assert "Warning" not in told


def test_a_notebook_imports_what_there_is_and_holds_no_outputs():
    assert {path.stem for path in (ROOT / "examples").glob("*.ipynb")} == set(SHOWN)
    for name in SHOWN:
        cells = notebook(name).cells
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
        code = [line for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")]
        assert unknown_names("\n".join(line for line in code if not line.startswith(("%", "!")))) == []
