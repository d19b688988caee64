"""The task contract."""

import json
from typing import get_args

import pytest

from questree.common.errors import QuestreeError
from questree.data import Question, Style, Task, load_task
from questree.data.relations import relation_question
from questree.metrics import Gold
from questree.signatures import AnswerStyle


def question(**fields: object) -> Question:
    given = {"id": "q", "task": "t", "question": "Who?", "answers": ["Ada"], "style": "short", "split": "train"}
    return Question.model_validate({**given, **fields})


def test_steps_are_resolved_from_earlier_answers_only() -> None:
    steps = [
        {"question": "Who wrote #1 hits like Emma?", "answer": "Jane Austen"},
        {"question": "Where was #1 born?", "answer": "Steventon"},
        {"question": "Which river is near <2>, and did #1 or #3 or #12 swim in it?", "answer": "Test"},
    ]
    assert [step.question for step in question(steps=steps).resolved_steps()] == [
        "Who wrote #1 hits like Emma?",
        "Where was Jane Austen born?",
        "Which river is near Steventon, and did Jane Austen or #3 or #12 swim in it?",
    ]


def test_a_step_without_an_answer_leaves_its_references() -> None:
    steps = [{"question": "Who?"}, {"question": "Where was #1 born?", "answer": "Steventon"}]
    assert question(steps=steps).resolved_steps()[1].question == "Where was #1 born?"


def test_an_example_has_two_inputs_and_carries_what_metrics_and_demonstrations_need() -> None:
    steps = [
        {"question": "Who wrote Emma?", "answer": "Jane Austen"},
        {"question": "Where was #1 born?", "answer": "Steventon"},
    ]
    made = question(
        answers=["Steventon", "Hampshire"], steps=steps, type="bridge", hops=2, gold_titles=["Emma"]
    ).to_example()
    assert made.inputs().toDict() == {"question": "Who?", "answer_style": "short"}
    assert made.labels().toDict() == {
        "answer": "Steventon",
        "answers": ["Steventon", "Hampshire"],
        "answers_are_regex": False,
        "id": "q",
        "kind": "bridge",
        "hops": 2,
        "gold_titles": ["Emma"],
        "annotated_steps": [step | {"support_title": None} for step in steps],
    }


def test_a_list_is_asked_and_scored_as_a_list() -> None:
    listed = question(answers=["Ann Lee", ["Bo Ek", "B. Ek"]], style="list")
    made = listed.to_example()
    assert made.inputs().toDict() == {"question": "Who?", "answer_style": "list"}
    assert (made.answer, made.answers) == ("Ann Lee; Bo Ek", ["Ann Lee", "Bo Ek"])
    assert made.needed == [["Ann Lee"], ["Bo Ek", "B. Ek"]]
    assert Gold.of(made).style == "list"
    assert Question.model_validate(listed.model_dump()) == listed


def test_a_question_without_an_answer_is_an_example_without_one() -> None:
    absent = question(answers=[])
    made = absent.to_example()
    assert (made.answer, made.answers, "needed" in made) == ("", [], False)


@pytest.mark.parametrize("world", ["easy", "hard"])
def test_an_invented_world_is_a_task_as_it_is(shared_data, world: str) -> None:
    task = load_task(shared_data / f"phantomwiki-{world}.jsonl")
    assert (task.style, task.metric) == ("mixed", "by-style")
    asked = [one for split in task.questions.values() for one in split]
    assert all((one.answers == ()) == (one.kind == "none") for one in asked)
    assert {len(one.needed) > 1 for one in asked if one.kind == "several"} == {True}
    assert all(len(one.needed) == len(one.answers) * (one.style == "list") for one in asked)


def test_data_and_signatures_know_the_same_answer_styles() -> None:
    assert get_args(Style) == get_args(AnswerStyle)


def test_a_task_says_which_splits_it_has() -> None:
    task = Task(name="t", style="short", metric="cover-em", questions={"train": (question(),), "dev": ()})
    assert task.split("train") == (question(),)
    assert [example.id for example in task.examples("train")] == ["q"]
    for absent in ("dev", "test"):
        with pytest.raises(QuestreeError, match=rf"Task t has no questions in split '{absent}'; it has: train \(1\)"):
            task.split(absent)


def test_gold_sentences_are_what_json_gives_back() -> None:
    mill = {"title": "Mill", "text": "It mills. It stands.", "sentences": ["It mills.", " It stands."]}
    asked = question(gold_titles=["Mill"], paragraphs=[{**mill, "supporting": [0], "is_supporting": True}])
    told = asked.to_example().gold_sentences
    assert told
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("relation", "asked"),
    [
        ("Peer Gynt >> author", "Who wrote Peer Gynt?"),
        ("#1 >> named after", "What is #1 named after?"),
        ("#2>>located in the administrative territorial entity", "In which administrative region is #2 located?"),
        ("Who wrote Peer Gynt?", "Who wrote Peer Gynt?"),
        ("What was #2 's population in #1 ?", "What was #2's population in #1?"),
        (">> author", ">> author"),
    ],
)
def test_a_step_s_relation_becomes_a_question(relation, asked):
    made = question(steps=[{"question": relation, "answer": "a"}]).to_example()
    assert made.annotated_steps[0]["question"] == asked


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("author", "Who wrote X?"),
        ("place of birth", "Where was X born?"),
        ("sibling", "Who is a sibling of X?"),
        ("cast member", "Who starred in X?"),
        ("spouse", "Who is the spouse of X?"),
        ("record label", "What is the record label of X?"),
        ("instance of", "What is X an instance of?"),
        ("owned by", "Who owns X?"),
        ("located on terrain feature", "Which terrain feature is X located on?"),
        ("named after", "What is X named after?"),
        ("part of", "What is X part of?"),
        ("shares border with", "What shares a border with X?"),
        ("country of citizenship", "Of which country is X a citizen?"),
    ],
)
def test_a_relation_becomes_a_question(relation: str, question: str) -> None:
    assert relation_question("X", relation) == question
