"""What stands beside the package for a public forge: it names targets, files and versions that are there."""

import re

import pytest
import yaml
from house import ROOT, SETUP

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
VERSION = SETUP["metadata"]["version"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_there_are(workflow):
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    called = {
        name.replace("${{ matrix.range }}", range)
        for job in jobs
        for step in job["steps"]
        for name in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE)
        for range in job.get("strategy", {}).get("matrix", {}).get("range", [""])
    }
    there = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    assert called <= set(there)
    assert called or workflow.stem not in ("tests", "release", "site")


def test_every_python_that_the_package_claims_is_tested():
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    claimed = re.findall(r"Python :: (3\.\d+)", SETUP["metadata"]["classifiers"])
    assert set(claimed) <= set(tests["jobs"]["tests"]["strategy"]["matrix"]["python"])
    assert f"python-{claimed[0]}_to_{claimed[-1]}-" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_citation_is_of_this_version_and_names_the_three_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == VERSION
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    numbers = [paper["url"].rsplit("/", 1)[1] for paper in citation["references"]]
    assert len(numbers) == 3
    assert all(f"arXiv {number}" in readme for number in numbers)


def test_the_image_takes_what_the_package_needs():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    rooms = {folder.split("/")[0] for folder in re.findall(r"= (\w[\w/]*)$", SETUP["options"]["package_dir"], re.M)}
    assert rooms <= kept
    assert {"setup.cfg", "pyproject.toml", "requirements.lock", "README.md", "LICENSE"} <= kept
    assert all((ROOT / name).exists() for name in kept)
