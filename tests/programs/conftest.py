"""The LMs of these tests, and programs that are asked with them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dspy
import pytest
from answering import Asked, TableRetriever, calls
from lms import answering as answering
from lms import scripted as scripted

from questree import program


class Ran(NamedTuple):
    """A question that was answered: the prediction, what the LM was asked, and what was searched for."""

    prediction: dspy.Prediction
    asked: list[Asked]
    queries: list[Any]


@pytest.fixture
def run(scripted: Any) -> Callable[..., Ran]:
    """Ask a program by its name, with an LM that gives these replies in order.

    ``found`` has the titles that each query finds, or is a retriever; ``how`` are settings.
    """

    def ask(name: str, *replies: Any, found: Any = None, question: str = "Which river?", **how: Any) -> Ran:
        engine, retriever = scripted(*replies), TableRetriever(found or {}) if isinstance(found, dict | None) else found
        prediction = program(name, retriever=retriever, **how)(question=question)
        return Ran(prediction, calls(engine), getattr(retriever, "queries", []))

    return ask
