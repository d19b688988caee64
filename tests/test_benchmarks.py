"""Each benchmark finds what it imports; what it measures is looked at by who runs it."""

import runpy

import pytest
from house import ROOT

SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_can_be_imported(script):
    if script.stem == "pictures":
        pytest.importorskip("playwright", reason="needs questree[browser]")
    assert runpy.run_path(str(script), run_name="imported")["__doc__"]
