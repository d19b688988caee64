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


@pytest.fixture
def run(scripted: Any) -> Callable[..., Ran]:
    """Ask a program by its name, with an LM that gives these replies in order, no fewer and no more.

    ``found`` has the titles that each query finds, or is a retriever; ``how`` are settings, and a reader.
    """

    def ask(
        name: str,
        *replies: Any,
        found: Any = None,
        question: str = "Which river?",
        style: str = "short",
        watch: Any = None,
        **how: Any,
    ) -> Ran:
        engine, retriever = scripted(*replies), TableRetriever(found or {}) if isinstance(found, dict | None) else found
        asked = program(name, retriever=retriever, **how)
        prediction = asked(question=question, answer_style=style, watch=watch)
        assert (prediction.failure, engine.replies) == (None, [])
        return Ran(prediction, calls(engine), getattr(retriever, "queries", []))

    return ask
