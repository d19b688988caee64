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


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_has_a_long_body(room):
    long = [
        f"{path}: {function.name}"
        for path in package_files(room)
        for function in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and _lines_of_body(function) > 60
    ]
    assert long == []


def _lines_of_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has, without its parameters and its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


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


@pytest.mark.parametrize("room", ROOMS)
def test_a_class_that_holds_a_program_says_which(room):
    untyped = [
        f"{path}: {kind.name}"
        for path in package_files(room)
        for kind in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for given in method.args.args + method.args.kwonlyargs
        if given.arg == "program" and given.annotation and ast.unparse(given.annotation) == "Any"
    ]
    assert untyped == []
