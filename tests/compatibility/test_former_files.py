"""What the version before the rooms were laid out anew wrote is read, gone on with, and answers as it did then.

The folders are in ``files/``, where ``made.sh`` says how they were made. A change that cannot read one of them any more
has to refuse it by name and say the way out; then its case here becomes one of that refusal.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from questree.evaluation.run_folder import read_records
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
    assert [passage.id for passage in passages] == [id for id, _ in found[kind]]
    assert [passage.score for passage in passages] == pytest.approx([score for _, score in found[kind]], rel=0.02)


def test_passages_are_added_to_an_index(files):
    (files / "more.jsonl").write_text('{"id": "new", "text": "The Moldau is a tone poem by Smetana."}\n')
    add_to_index(files / "more.jsonl", files / "bm25")
    assert load_index(files / "bm25")("Who wrote the Moldau?", k=1)[0].id == "new"


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("evaluate searchain", "run"),
        ("compare searchain oner", "compared"),
        ("compile searchain --optimizer bootstrap-few-shot", "compiled"),
        ("compile oner-cot --optimizer bootstrap-few-shot --optimizer-set max_labeled_demos=0", "taught"),
        ("compile oner-cot --optimizer bootstrap-random-search --optimizer-set candidates=1", "searched"),
        ("attack searchain oner --limit 2", "attacked"),
    ],
)
def test_the_same_command_goes_on_and_changes_no_figure(questree, files, command, out):
    ran = questree(*command.split(), *ASKED, "--out", out)
    assert ran.code == 0, ran.err
    before, after = contents(FILES / out), contents(files / out)
    assert {name for name in before if before[name] != after[name]} == set()
    assert not any(name.endswith("records.jsonl") for name in after.keys() - before.keys())


def test_a_run_of_other_settings_is_not_mixed_with_it(questree, files):
    ran = questree("evaluate", "searchain", "--set", "max_rounds=2", *ASKED, "--out", "run")
    assert ran.code == 2
    assert "run holds another run: settings was {'max_rounds': 5" in ran.err


def test_a_compiled_program_answers_as_it_did(questree, files):
    ran = questree("evaluate", "taught/program", *ASKED, "--out", "again")
    assert ran.code == 0, ran.err
    assert answers(files / "again") == answers(files / "taught" / "after")


def test_a_program_whose_demonstrations_lack_fields_answers_without_them(questree, files):
    """Its optimizer gave each predictor rows of the task, whole or not; only whole ones are shown to an LM today."""
    ran = questree("evaluate", "compiled/program", *ASKED, "--out", "again")
    assert ran.code == 0, ran.err
    records = map(json.loads, (files / "again" / "records.jsonl").read_text(encoding="utf-8").splitlines())
    assert {record["id"]: (bool(record["answer"]), record["failure"]) for record in records} == {
        "q1": (True, None), "q2": (True, None), "q3": (True, None),
    }  # fmt: skip


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
