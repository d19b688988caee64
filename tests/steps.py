"""Steps of a trace, made by the modules themselves with an LM that replies as it is told."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import dspy
from fakes import ScriptedEngine

from questree.programs.demonstrations import TraceStep
from questree.retrieval import Passage


def last_step(ask: Callable[..., Any], *replies: dict[str, Any], **inputs: Any) -> TraceStep:
    """Return the last step that the module adds to a trace when the LM gives these replies."""
    return steps(ask, *replies, **inputs)[-1]


def steps(ask: Callable[..., Any], *replies: dict[str, Any], **inputs: Any) -> list[TraceStep]:
    """Return the steps that the module adds to a trace when the LM gives these replies."""
    shown = [{name: json.dumps(value) if value is None else value for name, value in one.items()} for one in replies]
    lm = dspy.LM("scripted/test", engine=ScriptedEngine(shown), cache=False, num_retries=0)
    with dspy.context(lm=lm, adapter=None, trace=[]):
        ask(**inputs)
        return list(dspy.settings.trace)


def titled(titles: Sequence[str]) -> list[Passage]:
    """Return a passage for each title."""
    return [Passage(id=title, title=title, text="text") for title in titles]
