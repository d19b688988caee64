"""The bundled mini set keeps its promises."""

import json
import re
from collections import Counter

import pytest

from questree.data import Question, Task, load_task
from questree.metrics import contains, normalise, normalise_title

KINDS = {"bridge", "comparison", "intersection", "boolean", "slot", "claim", "long"}
STYLES = {"boolean": "yes-no", "claim": "label", "long": "long"}


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("mini")


@pytest.fixture(scope="module")
def lists() -> list[Question]:
    return [question for split in load_task("mini-lists").questions.values() for question in split]


@pytest.fixture(scope="module")
def questions(task: Task) -> list[Question]:
    return [question for split in task.questions.values() for question in split]


@pytest.fixture(scope="module")
def passages(task: Task) -> list[dict[str, str]]:
    return [json.loads(line) for line in task.corpus.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def texts(passages: list[dict[str, str]]) -> dict[str, str]:
    return {normalise_title(passage["title"]): passage["text"] for passage in passages}


def test_it_is_as_large_as_promised(questions: list[Question], passages: list[dict[str, str]]) -> None:
    assert len(passages) >= 240
    assert len(questions) >= 160
    assert max(question.hops for question in questions) >= 4
    assert sum(question.hops >= 2 for question in questions) >= 160


def test_nothing_stands_in_it_twice(questions: list[Question], passages: list[dict[str, str]]) -> None:
    for names in (
        [passage["id"] for passage in passages],
        [normalise_title(passage["title"]) for passage in passages],
        [passage["text"] for passage in passages],
        [question.id for question in questions],
        [normalise(question.question) for question in questions],
    ):
        assert [name for name, times in Counter(names).items() if times > 1] == []


def test_every_kind_is_in_every_split_and_has_its_style(questions: list[Question]) -> None:
    assert {(q.kind, q.split) for q in questions} == {(k, s) for k in KINDS for s in ("train", "dev", "test")}
    assert all(question.style == STYLES.get(question.kind, "short") for question in questions)


def test_a_hop_is_a_step_with_an_answer_that_refers_only_backward(questions: list[Question]) -> None:
    for question in questions:
        assert len(question.steps) == question.hops, question.id
        for number, step in enumerate(question.steps, start=1):
            assert step.answer, question.id
            assert all(1 <= int(n) < number for n in re.findall(r"#(\d+)", step.question)), question.id
        assert not any("#" in step.question for step in question.resolved_steps()), question.id


def test_each_steps_answer_stands_in_its_gold_passage(
    questions: list[Question], lists: list[Question], texts: dict[str, str]
) -> None:
    for question in [*questions, *lists]:
        supports = {step.support_title for step in question.steps}
        assert supports == set(question.gold_titles), question.id
        for step in question.steps:
            assert contains(texts[normalise_title(step.support_title)], step.answer), (question.id, step)


def test_the_answer_of_a_chain_is_that_of_a_step(questions: list[Question]) -> None:
    for question in questions:
        if question.kind in {"bridge", "slot"}:
            assert normalise(question.steps[-1].answer) in map(normalise, question.answers), question.id


def test_the_same_step_has_the_same_answer_everywhere(questions: list[Question], lists: list[Question]) -> None:
    answers: dict[str, set[str]] = {}
    for question in [*questions, *lists]:
        for step in question.resolved_steps():
            answers.setdefault(normalise(step.question), set()).add(step.answer)
    assert {step: given for step, given in answers.items() if len(given) > 1} == {}


def test_each_item_of_a_list_is_the_answer_of_a_step_and_each_split_has_questions_without_an_answer(
    lists: list[Question],
) -> None:
    told = [question for question in lists if question.answers]
    assert Counter((question.split, bool(question.answers)) for question in lists) == {
        (split, has): 4 for split in ("train", "dev", "test") for has in (True, False)
    }
    assert all(question.style == "list" and len(question.needed) > 1 for question in told)
    for question in told:
        assert {*question.answers} <= {step.answer for step in question.steps}, question.id
    assert {question.style for question in lists if not question.answers} == {"short", "list"}
