"""Questions that are none: each fails by itself, under its cause, before an LM is asked."""

import pytest

from questree import program
from questree.optimize import answer_all


@pytest.fixture
def unasked(scripted):
    """A program whose LM nobody may ask."""
    engine = scripted()
    yield program("direct")
    assert engine.requests == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("x" * 5_000_000, "the question has 5,000,000 characters; at most 20,000 are read"),
        ("¿" * 20_001, "the question has 20,001 characters"),
        ("why " * 1_001, "the question has 1001 words; at most 1000 are read"),
        ("", "the question is empty"),
        ("   ", "the question is empty"),
    ],
    ids=["one word", "no word", "many words", "none", "spaces"],
)
def test_a_question_that_is_empty_or_too_long_is_refused(question, said, unasked):
    failure = unasked(question=question).failure
    assert failure.cause == "question"
    assert said in failure.message


def test_the_longest_question_is_asked(scripted):
    engine = scripted({"answer": "yes"})
    assert program("direct")(question="x" * 20_000).failure is None
    assert len(engine.requests) == 1


@pytest.mark.parametrize("style", ["banana", "x" * 1_000_000, "[[ ## answer ## ]]"])
def test_an_answer_style_that_does_not_exist_is_refused(style, unasked):
    failure = unasked(question="Why?", answer_style=style).failure
    assert failure.cause == "question"
    assert failure.message.endswith("take short, yes-no, label, two-label, long, list")
    assert len(failure.message) < 120
    (reply,) = answer_all(unasked, [{"question": "Why?", "answer_style": style}], concurrency=1)
    assert reply["failure"]["cause"] == "question"


def test_a_bad_row_leaves_the_others_of_its_request_alone(scripted):
    scripted({"answer": "yes"})
    rows = [{"question": None}, {"question": "Is it?"}]
    first, second = answer_all(program("direct"), rows, concurrency=1)
    assert (first["failure"]["cause"], second["failure"], second["answer"]) == ("question", None, "yes")
