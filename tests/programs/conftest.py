"""The LMs of these tests, and programs that are asked with them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dspy
import pytest
from answering import Asked, TableRetriever, calls
from lms import answering as answering
from lms import scripted as scripted

from questree import program
from questree.programs import Node


class Ran(NamedTuple):
    """A question that was answered: the prediction, what the LM was asked, and what was searched for."""

    prediction: dspy.Prediction
    asked: list[Asked]
    queries: list[Any]

    @property
    def path(self) -> list[Node]:
        """The last path of the tree."""
        return self.prediction.tree.last_path()

    @property
    def prompts(self) -> list[str]:
        """The texts that the LM was sent."""
        return [one.text for one in self.asked]

    @property
    def calls(self) -> list[str]:
        """What the LM was asked for, each with the titles of the passages that it was shown."""
        return [repr(one) for one in self.asked]


@pytest.fixture
def run(scripted: Any, answering: Any) -> Callable[..., Ran]:
    """Ask a program by its name, with an LM that gives these replies in order, no fewer and no more.

    In place of them, a function of what is asked may reply; ``meet`` then tells what a call waits for. ``found`` has
    the titles that each query finds, or is a retriever; ``how`` are settings, and a reader.
    """

    def ask(
        name: str,
        *replies: Any,
        found: Any = None,
        question: str = "Which river?",
        style: str = "short",
        watch: Any = None,
        meet: Any = None,
        **how: Any,
    ) -> Ran:
        engine = answering(*replies, meet) if replies and callable(replies[0]) else scripted(*replies)
        retriever = TableRetriever(found or {}) if isinstance(found, dict | None) else found
        asked = program(name, retriever=retriever, **how)
        prediction = asked(question=question, answer_style=style, watch=watch)
        assert (prediction.failure, engine.replies) == (None, [])
        return Ran(prediction, calls(engine), getattr(retriever, "queries", []))

    return ask
