"""The recipe for a method in CONTRIBUTING.md, followed to the letter: two files and a line."""

import ast
import re
import sys
from textwrap import dedent
from types import ModuleType

import dspy
import pytest
from house import ROOT

import questree
from questree.common.lazy import PartsByName
from questree.data import MINI_CORPUS
from questree.optimize import load
from questree.optimize.artifact import save
from questree.programs import PROGRAMS, Program
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Traits, simulated_lm


def recipe() -> tuple[dict[str, str], str]:
    """Return the code of the recipe's files, by their paths in the checkout, and its line in the registry."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = list(map(dedent, re.findall(r"^ *```(?:python|text)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)))
    named = [re.match(r"# (\S+\.py)\n(.*)", block, re.DOTALL) for block in blocks]
    (line,) = (block for block in blocks if ".baselines." in block and block.count("\n") == 1)
    return {found[1]: found[2] for found in named if found}, line


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> type[Program]:
    """The method of the recipe, made of its files in memory and registered."""
    files, line = recipe()
    for path, code in files.items():
        module = ModuleType("questree." + path.removesuffix(".py").replace("/", "."))
        module.__package__ = module.__name__.rpartition(".")[0]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, path, "exec"), module.__dict__)
    ((name, place),) = ast.literal_eval("{" + line + "}").items()
    kind = PartsByName("questree.programs", {name: place})[name]
    assert kind.name == name
    monkeypatch.setitem(PROGRAMS, name, kind)
    return kind


def test_a_method_is_two_files_and_a_line():
    files, line = recipe()
    assert list(files) == ["signatures/doubts.py", "programs/baselines/twice.py"]
    assert len(line.strip().splitlines()) == 1


def test_the_recipe_s_method_answers_and_is_saved_and_loaded(twice, tmp_path):
    task = questree.load_task("mini")
    everything = [question for part in task.questions.values() for question in part]
    retriever = BM25Retriever.from_passages(read_corpus(MINI_CORPUS))
    program = questree.program("twice", retriever=retriever)
    asked = task.split("dev")[0]
    with dspy.context(lm=simulated_lm(everything, Traits(malformed=0), cache=False), adapter=None):
        prediction = program(question=asked.question, answer_style=asked.style)
        loaded = load(save(program, tmp_path / "twice"), retriever=retriever)
        again = loaded(question=asked.question, answer_style=asked.style)
    assert prediction.failure is None
    assert prediction.spent.calls == 3
    assert prediction.answer
    assert isinstance(loaded, twice)
    assert (again.answer, again.final_content) == (prediction.answer, prediction.final_content)
    doubts = [node.query for node in prediction.tree.nodes if node.source == "query" and node.round == 2]
    assert len(doubts) == 1  # a signature that the simulated LM has no skill for
    assert doubts[0] != asked.question
