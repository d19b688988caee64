"""A capsule without the texts of its data set: ids and digests alone, until whoever has the task replays it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_task import Mini
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import mini as mini

from questree.common.errors import QuestreeError
from questree.evaluation import compare
from questree.evaluation.capsule import pack, replay
from questree.evaluation.capsule.texts import Texts
from questree.evaluation.run_file import reading
from questree.programs.registry import build
from questree.signatures.verdict import CheckStep


@pytest.fixture
def capsule(mini, tmp_path) -> Path:
    """Two programs over two questions, packed without texts."""
    programs = {"searchain": mini.program(), "react": build("react", {}, retriever=mini.index)}
    compare(programs, mini.dev[:2], [mini.metric], task="mini", out=tmp_path / "runs")
    pack([tmp_path / "runs"], tmp_path / "study.capsule", texts=False)
    return tmp_path / "study.capsule"


def texts(mini: Mini) -> Texts:
    return Texts({one.id: one for one in mini.dev}, mini.index.passages)


def test_it_holds_no_passage_no_prompt_and_no_record_of_a_question(mini, capsule):
    content = capsule.read_bytes().decode(errors="replace")
    assert not [passage for passage in mini.index.passages if passage.text in content]
    assert not [one for one in mini.dev if one.question in content]
    assert "messages" not in content
    with reading(capsule) as file:
        assert file.rows("SELECT DISTINCT question FROM questions") == [("",)]


def test_with_the_task_the_records_are_the_same(mini, capsule):
    found = replay(capsule, texts=lambda: texts(mini))
    assert [len(run.questions) for run in found.runs] == [2, 2]
    assert found.same


def test_the_corpus_is_read_once_for_all_runs(mini, capsule):
    given = Texts({one.id: one for one in mini.dev}, iter(mini.index.passages))
    found = replay(capsule, texts=lambda: given)
    assert [len(run.questions) for run in found.runs] == [2, 2]
    assert found.same


def test_a_changed_prompt_is_named(mini, capsule, monkeypatch):
    monkeypatch.setattr(CheckStep, "__doc__", "Say otherwise what the passages say of the step.")
    found = replay(capsule, texts=lambda: texts(mini))
    told = {(one.by, one.why) for run in found.runs for question in run.differing for one in question.differences}
    assert told == {("CheckStep", "prompt changed")}


def test_a_record_that_differs_is_named(mini, capsule, monkeypatch):
    monkeypatch.setattr("questree.evaluation.records.RECALL_AT", (3,))
    found = replay(capsule, texts=lambda: texts(mini))
    told = [one for run in found.runs for question in run.differing for one in question.differences]
    assert [(one.by, one.why) for one in told] == [("record", "answer changed")] * 4


def test_what_is_missing_is_said(mini, capsule):
    with pytest.raises(QuestreeError, match="was packed without texts"):
        replay(capsule)
    with pytest.raises(QuestreeError, match=r"lacks the question .*'mini', with --task"):
        replay(capsule, texts=lambda: Texts({}, mini.index.passages))
    other = {one.id: one.copy(question="Another?").with_inputs("question", "answer_style") for one in mini.dev}
    with pytest.raises(QuestreeError, match="has another question"):
        replay(capsule, texts=lambda: Texts(other, mini.index.passages))
    with pytest.raises(QuestreeError, match=r"corpus lacks \d+ passages, .* --retriever"):
        replay(capsule, texts=lambda: Texts(texts(mini).questions, []))


def test_the_command_takes_the_texts_from_the_task(questree):
    assert questree("evaluate", "oner", "--limit", "2", "--tracking-uri", "none", "--out", "run").code == 0
    packed = questree("pack", "run", "--without-texts")
    assert "a replay needs --task" in packed.out
    ran = questree("replay", "study.capsule", "--task", "mini")
    assert ran.code == 0, ran.err
    assert "2 of 2 records are the same" in ran.out
    refused = questree("export", "study.capsule")
    assert refused.code == 2
    assert "was packed without texts" in refused.err
