"""Docstrings that are read at once, and names that say what is inside."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from house import ROOMS, ROOT, package_files

VERBS = (Path(__file__).with_name("verbs.txt")).read_text(encoding="utf-8").split()

GERUNDS = {"encoding", "training", "tracking"}  # words of the field

SAME = {"__init__", "base", "registry"}  # names that mean the same in every room

SIDES = (  # folders that share names, because they are the same thing seen from different sides
    # a prompt, the step that asks it, the programs that take such steps, how the simulated LM answers it
    {"signatures", "programs/modules", "programs", "programs/baselines", "simulate/skills"},
    {"data/tasks", "retrieval/corpora"},  # a publisher's questions, and its passages
)

rooms = pytest.mark.parametrize("room", ROOMS)


def docstrings(room: str) -> dict[str, str]:
    """Return the docstrings of the room's functions and methods by file and name."""
    return {
        f"{path}:{node.lineno} {node.name}": docstring
        for path in package_files(room)
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (docstring := ast.get_docstring(node))
    }


@rooms
def test_a_docstring_begins_with_an_imperative(room):
    """The verb stands in verbs.txt; whoever uses a new one adds it there."""
    first = {where: docstring.split()[0].rstrip(",") for where, docstring in docstrings(room).items()}
    assert {where: word for where, word in first.items() if word not in VERBS} == {}


@rooms
def test_a_docstring_begins_with_a_whole_sentence(room):
    first = {where: docstring.split("\n\n")[0] for where, docstring in docstrings(room).items()}
    assert {where: sentence for where, sentence in first.items() if not sentence.endswith(".")} == {}


def test_the_verbs_are_in_order():
    assert sorted(set(VERBS)) == VERBS


@rooms
def test_a_file_is_called_by_a_noun(room):
    last = {str(path): path.stem.split("_")[-1] for path in package_files(room)}
    assert {path for path, word in last.items() if word.endswith("ing") and word not in GERUNDS} == set()


@rooms
def test_a_name_means_one_thing(room):
    others = defaultdict(list)
    for path in package_files():
        if path.parts[0] != room:
            others[path.stem].append(path)
    shared = {
        f"{path} and {other}"
        for path in package_files(room)
        if path.stem not in SAME
        for other in others[path.stem]
        if not akin(path.parent, other.parent)
    }
    assert shared == set()


def akin(folder, other):
    """Whether a name stands for the same in both; a command is called after what it is about."""
    names = {str(folder), str(other)}
    return "api/cli" in names or any(names <= side for side in SIDES)
