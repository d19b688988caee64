"""The house: which folders there are, how many files, how long the README."""

from __future__ import annotations

import ast

import pytest
from house import FOLDERS, PACKAGES, ROOMS, ROOT, package_files

OUTSIDE = {"tests", "benchmarks", "examples", "docs"}  # Python that is no part of the package


def test_every_folder_of_python_is_installed():
    rooms = [top for top in ROOT.iterdir() if any(top.glob("*.py")) and top.name not in OUTSIDE]
    found = {str(path.parent.relative_to(ROOT)) for room in rooms for path in room.rglob("*.py")}
    assert sorted(found) == sorted(FOLDERS.values())


def test_a_folder_stands_in_setup_cfg_twice():
    assert sorted(FOLDERS) == sorted(PACKAGES)


def test_the_package_has_no_more_files_than_it_needs():
    assert len(package_files()) <= 362  # 250 when the house was laid out; each new method or command brings its own


def test_the_readme_is_read_in_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


@pytest.mark.parametrize("room", ROOMS)
def test_exports_are_written_once(room):
    twice = [
        str(path)
        for path in package_files(room)
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and "__all__" in {ast.unparse(target) for target in node.targets}
    ]
    assert twice == []
