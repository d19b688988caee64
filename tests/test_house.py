"""The house: which folders there are, how many files, how long the README."""

import ast
from collections import Counter

import pytest
from house import FOLDERS, PACKAGES, ROOMS, ROOT, package_files

OUTSIDE = {"tests", "benchmarks", "examples", "docs"}  # Python that is no part of the package


def test_every_folder_of_python_is_installed():
    rooms = [top for top in ROOT.iterdir() if any(top.glob("*.py")) and top.name not in OUTSIDE]
    found = {str(path.parent.relative_to(ROOT)) for room in rooms for path in room.rglob("*.py")}
    assert sorted(found) == sorted(FOLDERS.values())


def test_a_folder_stands_in_setup_cfg_twice():
    assert sorted(FOLDERS) == sorted(PACKAGES)


LINES = {  # all lines of Python: a budget that is only ever lowered, with room for a method, a retriever and a task
    "retrieval": 8232,  # behind each, what the room is to have in the end: 7400, and linked/
    "evaluation": 5886,  # 5000
    "programs": 7096,  # 6200, and evidence-chain; 36 lines of it are free: the room of one method
    "optimize": 4890,  # 4500
    "api": 4213,  # 3900
    "simulate": 2650,  # 2100
    "lm": 3026,  # 1900
    "data": 2626,  # 2700
    "common": 1350,  # 1200
    "service": 1910,  # with pages 2700
    "metrics": 1369,  # 1300
    "pages": 999,
    "signatures": 1110,  # 1100
    "tests": 30837,  # 28000
    "benchmarks": 3503,  # 3200, and image.py
}


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_lines(room):
    files = (ROOT / room).rglob("*.py")
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in files) <= LINES[room]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize("room", ROOMS)
def test_exports_are_written_once(room):
    twice = [
        str(path)
        for path in package_files(room)
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and "__all__" in {ast.unparse(target) for target in node.targets}
    ]
    assert twice == []


def test_no_two_classes_share_a_name():
    trees = [ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in package_files()]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
