"""What the version before the rooms were laid out anew wrote is read, or refused by name with the way out.

The folders are in ``files/``, where ``made.sh`` says how they were made. Indexes, calibrations and the records of runs
are read as they were. What was compiled for, or asked with, prompts that have changed since is refused. A change that
cannot read one of the others any more has to do the same; then its case here becomes one of that refusal.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from questree.common.errors import QuestreeError
from questree.evaluation.run_manifest import claim
from questree.evaluation.stored_runs import read_records
from questree.retrieval import load_index
from questree.retrieval.index_folder import add_to_index

FILES = Path(__file__).with_name("files")
ASKED = ("--task", "questions.jsonl", "--retriever", "bm25")


@pytest.fixture
def files(workplace, monkeypatch):
    """A copy of the folders, which is where commands run."""
    monkeypatch.setenv("QUESTREE_TRACKING_URI", "none")
    monkeypatch.chdir(shutil.copytree(FILES, workplace / "files"))
    return workplace / "files"


def contents(folder):
    """What a folder's files hold; of JSON, what it means."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: json.loads(held) if name.endswith(".json") else held for name, held in files.items()}


def answers(run):
    """What a run's records hold, but for its seconds, and for whether a reply came from a cache."""
    told = {"question", "answer", "final_content", "references", "passages", "tree", "scores"}
    return {record.id: record.model_dump(include=told) for record in read_records(run)}


@pytest.mark.parametrize("kind", ["bm25", "exact", "dense"])
def test_an_index_finds_what_it_found(kind):
    found = json.loads((FILES / "found.json").read_text())
    passages = load_index(FILES / kind)(found["query"], k=3)
    kept = [(id, score) for id, score in found[kind] if score]  # BM25 gave passages without a word of the query, too
    assert [passage.id for passage in passages] == [id for id, _ in kept]
    assert [passage.score for passage in passages] == pytest.approx([score for _, score in kept], rel=0.02)


def test_passages_are_added_to_an_index(files):
    (files / "more.jsonl").write_text('{"id": "new", "text": "The Moldau is a tone poem by Smetana."}\n')
    add_to_index(files / "more.jsonl", files / "bm25")
    assert load_index(files / "bm25")("Who wrote the Moldau?", k=1)[0].id == "new"


COMMANDS = [
    ("evaluate searchain", "run", "run"),
    ("compare searchain oner", "compared", "compared/searchain"),
    ("compile searchain --optimizer bootstrap-few-shot", "compiled", "compiled"),
    ("compile oner-cot --optimizer bootstrap-random-search --optimizer-set candidates=1", "searched", "searched"),
    ("attack searchain oner --limit 2", "attacked", "attacked/none/clean/searchain"),
]


@pytest.mark.parametrize(("command", "out", "refused"), COMMANDS)
def test_what_was_asked_with_other_prompts_is_refused_by_name_and_left_as_it_is(questree, files, command, out, refused):
    ran = questree(*command.split(), *ASKED, "--out", out)
    assert ran.code == 2
    prompts = f"{refused} holds another run: the prompts or demonstrations of {command.split()[1]} have changed since"
    assert prompts in ran.err
    assert "Answers to other prompts are not mixed: name another folder." in ran.err
    assert contents(files / out) == contents(FILES / out)


@pytest.mark.parametrize("place", [".", "before"])
def test_who_wrote_a_run_with_other_prompts_is_told(tmp_path, place):
    manifest, facts = tmp_path / "run.json", {"program": "searchain", "compiled state": "a"}
    claim(manifest, facts)
    (tmp_path / place).mkdir(exist_ok=True)
    surroundings = tmp_path / place / "surroundings.json"
    for content, writer in [
        ('{"versions": {"questree": "0.0.9"}}', r" \(questree 0.0.9 wrote it\)"),
        ("[1]", ""),
        ("", ""),
    ]:
        surroundings.write_text(content)
        with pytest.raises(QuestreeError, match=rf"demonstrations of searchain have changed since{writer}\. Answers"):
            claim(manifest, facts | {"compiled state": "b"})
    with pytest.raises(
        QuestreeError, match=r"another run: program was 'searchain' and is now 'direct'. Go on with what"
    ):
        claim(manifest, {"program": "direct", "compiled state": "b"})


def test_another_folder_is_the_way_out_for_a_run(questree, files):
    ran = questree("evaluate", "searchain", *ASKED, "--out", "another")
    assert ran.code == 0, ran.err
    assert answers(files / "another").keys() == answers(files / "run").keys()


def test_a_run_of_other_settings_is_not_mixed_with_it(questree, files):
    ran = questree("evaluate", "searchain", "--set", "max_rounds=2", *ASKED, "--out", "run")
    assert ran.code == 2
    assert "run holds another run: " in ran.err
    assert "settings was {'max_rounds': 5" in ran.err
    assert "'max_rounds': 2" in ran.err


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        ("compiled/program", ["PlanChain (chain_of_query.plan)", "TraceAnswer (tracing.trace)"]),
        ("searched/program", ["AnswerWithKnowledge (knowledge_answer.answer)"]),
    ],
)
def test_a_program_compiled_for_other_prompts_is_refused_by_name(questree, files, folder, named):
    ran = questree("evaluate", folder, *ASKED, "--out", "again")
    assert ran.code == 2
    assert all(name in ran.err for name in [folder, *named])
    assert "Compile anew" in ran.err
    assert not (files / "again").exists()


def test_compiling_anew_is_the_way_out_for_a_program(questree, files):
    ran = questree("compile", "searchain", "--optimizer", "bootstrap-few-shot", *ASKED, "--out", "anew")
    assert ran.code == 0, ran.err
    again = questree("evaluate", "anew/program", *ASKED, "--out", "again")
    assert again.code == 0, again.err
    assert answers(files / "again") == answers(files / "anew" / "after")


def test_runs_are_shown_and_analysed(questree, files):
    assert "Who wrote The Metamorphosis? → Franz Kafka" in questree("show", "run", "--id", "q1").out
    assert "Was Thomas Mann born before Franz Kafka?" in questree("show", "run").out
    assert "bootstrap-few-shot" in questree("show", "compiled/program").out
    assert "0.100" in questree("analyse", "efficiency", "run", "compared/oner").out  # seconds of a question


def test_thresholds_are_those_that_were_calibrated(questree, files):
    ran = questree(
        *("evaluate", "searchain", "--task", "questions.jsonl", "--retriever", "dense"),
        *("--reader", "reader", "--duplicates", "duplicates", "--out", "again"),
    )
    assert ran.code == 0, ran.err
    kept = json.loads((FILES / "reader" / "questree-reader.json").read_text())
    assert json.loads((files / "again" / "run.json").read_text())["reader"]["threshold"] == kept["threshold"]
