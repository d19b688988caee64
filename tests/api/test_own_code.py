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


def forget():
    """Let a later command be a process of its own, in which nothing of it was imported."""
    REGISTRY._imported.clear()
    del sys.modules["own_parts"]


def test_programs_and_metrics_of_ones_own_are_compared(questree, own):
    told = questree("compare oner own_parts:Both --metric own_parts:brevity --limit 2 --out run").done().out
    assert "own_parts:brevity" in told
    assert "both" in told


def test_one_is_compiled_saved_and_asked_where_its_code_is_allowed(questree, own):
    parts = "--retriever own_parts:Capitals --task own_parts:short_questions"
    how = "--optimizer own_parts:FirstQuestions --limit 2 --out run"
    assert "--allow-code own_parts:Both" in questree(f"compile own_parts:Both {parts} {how}").done().out
    saved = json.loads((own / "run" / "program" / "questree.json").read_text())
    assert saved["program"]["name"] == "own_parts:Both"
    assert not list((own / "run" / "program").glob("*.py"))

    forget()
    ask = "ask 'Which city?' --program run/program"
    assert questree(ask).refused()
    assert "own_parts" not in sys.modules
    ask += " --retriever own_parts:Capitals"
    assert "allow it: --allow-code own_parts:Both" in questree(ask).refused()
    assert "Answer: " in questree(f"{ask} --allow-code own_parts:Both").out


def test_its_runs_are_packed_and_replayed_where_its_code_is_allowed(questree, own):
    questree("compare direct own_parts:Both --retriever own_parts:Capitals --limit 2 --out run").done()
    questree("pack run").done()
    forget()
    for how in ("", "--live --out live"):
        assert "allow it: --allow-code own_parts:Both" in questree(f"replay study.capsule {how}").refused()
    assert "own_parts" not in sys.modules
    assert not (own / "live").exists()  # nothing was asked of the LM before it was refused
    allowed = "replay study.capsule --allow-code own_parts:Both"
    assert "both: 2 of 2 records are the same" in questree(allowed).done().out
    questree(allowed, "--live", "--out", "live").done()


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
    assert REGISTRY.named("cot") is PROGRAMS["cot"]
    for what, names in {
        "programs": [*PROGRAMS, "both"],
        "metrics": [*METRICS, "brevity"],
        "optimizers": [*OPTIMIZERS, "first-questions"],
        "retrievers": ["capitals", "PACKAGE:NAME"],
        "tasks": ["short"],
    }.items():
        listed = questree(f"list {what}").done().out
        assert [name for name in names if name not in listed] == []
    assert "No module named" in " ".join(questree("list programs").out.split())


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
        ("evaluate searchian", "Did you mean 'searchain'?"),
        ("evaluate own_parts:Bth", "own_parts has no 'Bth'. Did you mean 'Both'?"),
        ("evaluate own_parts:brevity", "is no subclass of questree.programs.Program"),
        ("evaluate nowhere:Program", "no module 'nowhere'"),
        ("evaluate cot --metric own_parts:Both", "it is no metric"),
        ("evaluate cot --task own_parts:brevity", "The task 'own_parts:brevity' cannot be used"),
        ("evaluate cot --metric broken:score", "ZeroDivisionError: division by zero"),
        ("compile cot --optimizer own_parts:Both", "no subclass of questree.optimize.Optimizer"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(questree, own, words, told):
    (own / "broken.py").write_text("1 / 0")
    assert told in questree(words).refused()


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
