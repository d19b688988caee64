"""The LMs of a test, as fixtures: one that gives replies in order, one that replies by what it is asked."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import dspy
import pytest
from answering import AnsweringEngine, Asked
from fakes import ScriptedEngine


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedEngine]]:
    """Make the LM of this test give the replies in order; returns the engine, which holds the prompts it got."""
    with ExitStack() as contexts:

        def script(*replies: Any) -> ScriptedEngine:
            engine = ScriptedEngine(list(replies))
            lm = dspy.LM("scripted/test", engine=engine, cache=False, num_retries=0)
            contexts.enter_context(dspy.context(lm=lm, adapter=None))
            return engine

        yield script


@pytest.fixture
def answering() -> Iterator[Callable[..., AnsweringEngine]]:
    """Make the LM of this test reply by what it is asked; returns the engine, which holds what it was asked."""
    with ExitStack() as contexts:

        def answer(reply: Callable[[Asked], Any], meet: Any = None) -> AnsweringEngine:
            engine = AnsweringEngine(reply, meet)
            lm = dspy.LM("answering/test", engine=engine, cache=False, num_retries=0)
            contexts.enter_context(dspy.context(lm=lm, adapter=None))
            return engine

        yield answer
