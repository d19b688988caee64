"""Parts of other packages: by `package:name`, and as entry points. A saved program names its code and brings none."""

import json
import shutil
import sys
from importlib.metadata import EntryPoint

import pytest
from house import ROOT

import questree as front
from questree.common import registry as registries
from questree.common.errors import QuestreeError
from questree.common.registry import described
from questree.data import load_task
from questree.metrics import METRICS, metric
from questree.optimize import OPTIMIZERS, load, save
from questree.programs import PROGRAMS, REGISTRY, allow, build
from questree.retrieval import open_retriever


@pytest.fixture
def own(workplace, monkeypatch):
    """The example's package in the working folder, and nothing that was imported before."""
    shutil.copy(ROOT / "examples" / "own_parts.py", workplace)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for part in (REGISTRY, front.metrics.REGISTRY, front.optimize.REGISTRY, front.data.REGISTRY):
        monkeypatch.setattr(part, "_imported", {})
    monkeypatch.setattr(front.retrieval.retriever_names.RETRIEVERS, "_imported", {})
    monkeypatch.delitem(sys.modules, "own_parts", raising=False)
    yield workplace
    sys.modules.pop("own_parts", None)


@pytest.fixture
def installed(own, monkeypatch):
    """The same package, installed, with entry points."""
    offered = {
        "questree.programs": {"both": "own_parts:Both", "broken": "nowhere:Program", "cot": "own_parts:Both"},
        "questree.metrics": {"brevity": "own_parts:brevity"},
        "questree.optimizers": {"first-questions": "own_parts:FirstQuestions"},
        "questree.tasks": {"short": "own_parts:short_questions"},
        "questree.retrievers": {"capitals": "own_parts:Capitals"},
    }
    monkeypatch.syspath_prepend(own)
    monkeypatch.setattr(
        registries,
        "entry_points",
        lambda group: [EntryPoint(name, value, group) for name, value in offered.get(group, {}).items()],
    )


def test_programs_and_metrics_of_ones_own_are_compared(questree, own, index):
    words = ("--metric", "own_parts:brevity", "--retriever", index, "--tracking-uri", "none", "--limit", "2")
    ran = questree("compare", "oner", "own_parts:Both", *words, "--out", "run").done()
    assert "own_parts:brevity" in ran.out
    assert "both" in ran.out


def test_one_is_compiled_saved_and_asked_where_its_code_is_allowed(questree, own):
    words = ("--retriever", "own_parts:Capitals", "--task", "own_parts:short_questions", "--tracking-uri", "none")
    how = ("--optimizer", "own_parts:FirstQuestions", "--limit", "2", "--out", "run")
    ran = questree("compile", "own_parts:Both", *words, *how).done()
    assert "--allow-code own_parts:Both" in ran.out
    saved = json.loads((own / "run" / "program" / "questree.json").read_text())
    assert saved["program"]["name"] == "own_parts:Both"
    assert not list((own / "run" / "program").glob("*.py"))

    REGISTRY._imported.clear()
    del sys.modules["own_parts"]
    ask = ("ask", "Which city?", "--program", "run/program", "--retriever", "own_parts:Capitals")
    refused = questree(*ask[:4])
    assert refused.code == 2
    assert "own_parts" not in sys.modules
    assert "allow it: --allow-code own_parts:Both" in questree(*ask).err.replace("\n", " ")
    answered = questree(*ask, "--allow-code", "own_parts:Both")
    assert "Answer: " in answered.out, answered.err


def test_its_runs_are_packed_and_replayed_where_its_code_is_allowed(questree, own):
    words = ("--retriever", "own_parts:Capitals", "--tracking-uri", "none", "--limit", "2", "--out", "run")
    questree("compare", "direct", "own_parts:Both", *words).done()
    questree("pack", "run").done()
    REGISTRY._imported.clear()
    del sys.modules["own_parts"]
    for refused in (
        questree("replay", "study.capsule"),
        questree("replay", "study.capsule", "--live", "--out", "live"),
    ):
        assert refused.code == 2
        assert "allow it: --allow-code own_parts:Both" in refused.err.replace("\n", " ")
    assert "own_parts" not in sys.modules
    assert not (own / "live").exists()  # nothing was asked of the LM before it was refused
    ran = questree("replay", "study.capsule", "--allow-code", "own_parts:Both").done()
    assert "both: 2 of 2 records are the same" in ran.out
    questree("replay", "study.capsule", "--allow-code", "own_parts:Both", "--live", "--out", "live").done()


def test_a_name_in_a_file_imports_nothing(own, tmp_path):
    (own / "bomb.py").write_text("raise SystemExit('imported')")
    (own / "sub.py").write_text("from own_parts import Both as Sub")
    allow("own_parts:Both", {})
    folder = save(build("own_parts:Both", {}), tmp_path / "program")
    REGISTRY._imported.clear()
    with pytest.raises(QuestreeError, match=r"allow_code=\['own_parts:Both'\]"):
        load(folder)
    assert type(load(folder, allow_code=["own_parts:Both"])).__name__ == "Both"
    for settings in ({"of": "bomb:Program"}, {"of": "self-consistency", "program": {"of": "bomb:Program"}}):
        with pytest.raises(QuestreeError, match="no installed package offers"):
            build("self-consistency", settings)


def test_a_user_names_the_program_inside_another_one(own):
    program = front.program("self-consistency", of="own_parts:Both", retriever="own_parts:Capitals")
    assert type(program.program).__name__ == "Both"


def test_every_kind_is_opened_by_its_name_in_python(own):
    found = front.program("own_parts:Both", retriever="own_parts:Capitals").retriever("Lima?", 1)
    assert [passage.title for passage in found] == ["Peru"]
    task = load_task("own_parts:short_questions", limit=3)
    assert task.name == "own_parts:short_questions"
    assert [len(questions) for questions in task.questions.values()] == [3, 3, 3]
    assert front.optimize.optimizer("own_parts:FirstQuestions", count=1).count == 1
    assert metric("own_parts:brevity").name == "own_parts:brevity"


def test_entry_points_are_listed_beside_ours_and_never_in_their_place(questree, installed):
    ran = questree("list", "programs").done()
    assert all(name in ran.out for name in [*PROGRAMS, "both"])
    assert "No module named" in " ".join(ran.out.split())
    assert REGISTRY.named("cot") is PROGRAMS["cot"]
    assert all(name in questree("list", "metrics").out for name in [*METRICS, "brevity"])
    assert all(name in questree("list", "optimizers").out for name in [*OPTIMIZERS, "first-questions"])
    assert all(name in questree("list", "retrievers").out for name in ["capitals", "PACKAGE:NAME"])
    assert "short" in [row["task"] for row in json.loads(questree("list", "tasks", "--json").out)]


def test_an_installed_program_loads_without_more(installed, tmp_path):
    folder = save(front.program("both"), tmp_path / "program")
    assert json.loads((folder / "questree.json").read_text())["program"]["name"] == "both"
    REGISTRY._imported.clear()
    assert type(load(folder)).__name__ == "Both"
    assert load_task("short", split="dev", limit=1).name == "short"
    assert open_retriever("capitals").name == "capitals"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("evaluate", "searchian"), "Did you mean 'searchain'?"),
        (("evaluate", "own_parts:Bth"), "own_parts has no 'Bth'. Did you mean 'Both'?"),
        (("evaluate", "own_parts:brevity"), "is no subclass of questree.programs.Program"),
        (("evaluate", "nowhere:Program"), "no module 'nowhere'"),
        (("evaluate", "cot", "--metric", "own_parts:Both"), "it is no metric"),
        (("evaluate", "cot", "--task", "own_parts:brevity"), "The task 'own_parts:brevity' cannot be used"),
        (("evaluate", "cot", "--metric", "broken:score"), "ZeroDivisionError: division by zero"),
        (("compile", "cot", "--optimizer", "own_parts:Both"), "no subclass of questree.optimize.Optimizer"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(questree, own, words, told):
    (own / "broken.py").write_text("1 / 0")
    ran = questree(*words, "--tracking-uri", "none")
    assert ran.code == 2
    assert told in " ".join(ran.err.split())


def test_a_program_that_stands_inside_a_function_is_not_saved(tmp_path):
    class Inside(PROGRAMS["direct"]):
        name = "inside"

    with pytest.raises(QuestreeError, match="move it out"):
        save(Inside(), tmp_path / "program")


def test_a_file_in_the_working_folder_hides_no_package(own):
    (own / "json.py").write_text("raise SystemExit('hidden')")
    with pytest.raises(QuestreeError, match="json has no 'Program'"):
        REGISTRY.named("json:Program")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_line(name):
    line, paper = described(PROGRAMS[name].__doc__)
    assert len(line.split()) > 3
    assert paper


@pytest.mark.parametrize("takes", ["query", "query, k", "query, k=3"])
def test_a_function_from_a_query_is_a_retriever_by_its_name(takes, own):
    (own / f"lake_{len(takes)}.py").write_text(f"def lakes({takes}):\n    return ['Lakes | ' + query]\n")
    (found,) = open_retriever(f"lake_{len(takes)}:lakes")("Constance", 2)
    assert (found.title, found.text) == ("Lakes", "Constance")
