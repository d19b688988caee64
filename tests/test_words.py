"""Docstrings that are read at once, and names that say what is inside."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from house import ROOMS, ROOT, package_files

VERBS = (Path(__file__).with_name("verbs.txt")).read_text(encoding="utf-8").split()

GERUNDS = {"encoding", "training", "tracking"}  # words of the field

SAME: dict[str, str] = {  # files in different rooms that share a name, because they mean the same
    "__init__": "the exports of a folder",
    "base": "what the others of the folder extend",
    "registry": "from a name to what it stands for",
    **dict.fromkeys(
        ("answers", "chain_of_query", "knowledge", "searches", "subquestions"),
        "prompts, the steps that ask them, and how the simulated LM answers them",
    ),
}

NOT_YET = set(ROOMS) - {"simulate"}  # rooms whose words are still being rewritten

rooms = pytest.mark.parametrize(
    "room", [pytest.param(room, marks=pytest.mark.xfail(strict=False) if room in NOT_YET else ()) for room in ROOMS]
)


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
    first = {where: docstring.split()[0] for where, docstring in docstrings(room).items()}
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
            others[path.stem].append(str(path))
    shared = {str(path): others[path.stem] for path in package_files(room) if path.stem in others.keys() - SAME}
    assert shared == {}
