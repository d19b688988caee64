"""Disks that fill up and folders that cannot be written: said by name, and nothing that was finished is lost."""

import logging
import random
from contextlib import suppress

import dspy
import pytest
from run_files import rows

from questree.common.errors import QuestreeError
from questree.common.files import write_atomically
from questree.evaluation.comparison.comparison import compare
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.kept_replies import use_lm_cache
from questree.lm.limits import RunPolicy
from questree.metrics import metric
from questree.optimize import load, save
from questree.programs import build
from questree.retrieval import build_index

right = metric("em")
ONE = RunPolicy(concurrency=1)


def told(records):
    return {record.id: record.model_copy(update={"seconds": 0.0}) for record in records}


@pytest.fixture
def run(mini, tmp_path):
    """A finished run over six questions."""
    evaluate(mini.program(), mini.dev[:6], right, out=tmp_path / "run", policy=ONE)
    return tmp_path / "run"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_disk_that_fills_up_during_a_run_loses_no_finished_question(run, mini, tmp_path, full_disk, concurrency):
    draw, whole = random.Random(3), told(read_records(run))
    size = (run / "runs.db").stat().st_size
    for room in [draw.randrange(70_000, size) for _ in range(2)]:
        out = tmp_path / f"{room}"
        with full_disk(room), pytest.raises(QuestreeError, match=r"runs\.db"):
            evaluate(mini.program(), mini.dev[:6], right, out=out, policy=RunPolicy(concurrency=concurrency))
        kept = told(read_records(out))
        finished = evaluate(mini.program(), mini.dev[:6], right, out=out, policy=ONE)
        assert told(finished.records) == whole
        assert {id: whole[id].answer for id in kept} == {id: record.answer for id, record in kept.items()}
        assert {id: whole[id].tree for id in kept} == {id: record.tree for id, record in kept.items()}


def test_a_file_that_does_not_fit_leaves_the_former_one(tmp_path, full_disk):
    write_atomically(tmp_path / "file", "a")
    with full_disk(10), pytest.raises(QuestreeError, match="make room"):
        write_atomically(tmp_path / "file", "b" * 20)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "a")]


def test_what_a_kill_left_of_a_file_goes_with_its_next_writing(tmp_path):
    (tmp_path / ".file.unfinished").write_text("ha")
    write_atomically(tmp_path / "file", "whole")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "whole")]


def test_a_compilation_on_a_full_disk_goes_on_when_there_is_room(mini, tmp_path, full_disk, caplog):
    whole = mini.compiled(train=8, dev=4)
    for out, room in ((tmp_path / "small", 4_000), (tmp_path / "larger", 60_000)):
        caplog.clear()
        with full_disk(room), suppress(QuestreeError):  # nothing else; where all fits, nothing at all
            mini.compiled(train=8, dev=4, out=out)
        done = mini.compiled(train=8, dev=4, out=out)
        assert done.program.dump_state() == whole.program.dump_state()
        [[kept]] = rows(out, "SELECT count(*) FROM candidates")
        assert kept + caplog.text.count("was not kept") >= len(whole.compilation.candidates)
        assert not list(out.rglob(".*"))


def test_a_program_that_does_not_fit_leaves_the_former_one(mini, tmp_path, full_disk):
    save(mini.program(), tmp_path / "program", said="first")
    with full_disk(1000), pytest.raises(QuestreeError, match=r"Cannot write .*make room"):
        save(mini.program(), tmp_path / "program")
    assert load(tmp_path / "program", retriever=mini.index).name == "searchain"
    assert [path.name for path in tmp_path.iterdir()] == ["program"]


def test_a_cache_that_cannot_be_made_is_refused(tmp_path, monkeypatch, full_disk):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    with full_disk(1000), pytest.raises(QuestreeError, match=r"replies cannot be kept in .*QUESTREE_CACHE"):
        use_lm_cache()


def test_a_reply_that_cannot_be_kept_is_said_once_and_serves(tmp_path, monkeypatch, full_disk, caplog):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    with caplog.at_level(logging.WARNING), full_disk(10):
        for number in range(3):
            dspy.cache.put({"number": number}, {"text": "x" * 100_000})
    assert caplog.text.count("could not be kept") == 1
    assert dspy.cache.get({"number": 1}) == {"text": "x" * 100_000}


def test_a_read_only_folder_is_named_and_can_be_read(run, mini, read_only):
    with read_only(run) as copy:
        for write in (
            lambda: evaluate(mini.program(), mini.dev[:6], right, out=copy),
            lambda: evaluate(mini.program(), mini.dev[:6], right, out=copy / "inside"),
            lambda: mini.compiled(out=copy),
            lambda: compare({"one": mini.program()}, mini.dev[:6], [right], out=copy),
            lambda: save(mini.program(), copy / "program"),
            lambda: build_index(mini.index.passages[:4], copy / "index", kind="bm25"),
            lambda: write_atomically(copy / "file", "text"),
        ):
            with pytest.raises(QuestreeError, match=str(copy)):
                write()
        assert len(stored_runs([copy])[0].records) == 6


def test_a_read_only_program_answers(mini, tmp_path, read_only):
    save(build("searchain", {}, retriever=mini.index), tmp_path / "program")
    with read_only(tmp_path / "program") as copy:
        program = load(copy, retriever=mini.index)
        assert program(**mini.dev[0].inputs()).failure is None
