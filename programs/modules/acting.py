"""Reasoning and acting in turns (ReAct), with a search as the tool."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import dspy

from ...common.text import changed_texts, neutralise
from ...lm.call import call
from ...lm.failure import CallFailedError
from ...signatures import AnswerByActing, AnswerStyle


def search(query: str) -> str:
    """Finds passages of an encyclopedia, each behind its number. The query is complete in itself."""
    raise NotImplementedError(f"{query}: each question brings a search of its own")


class Acting(dspy.ReAct):
    """DSPy's ReAct whose calls go through `call`: retried, counted, and typed where they fail.

    Args:
        max_turns: thoughts with an action at most.
        must_finish: whether there is an answer only if the LM finished of its own accord; otherwise one is read
            from the trajectory in any case.
    """

    def __init__(self, max_turns: int, must_finish: bool = False):
        super().__init__(AnswerByActing, tools=[search], max_iters=max_turns)
        self.must_finish = must_finish
        self.failure: CallFailedError | None = None

    def forward(self, question: str, answer_style: AnswerStyle, find: Callable[[str], str]) -> dspy.Prediction:
        """``trajectory``, ``reasoning`` and ``answer``, which is None without one.

        Args:
            question: in the user's words.
            answer_style: the form of the answer.
            find: what a search gives for a query, as the LM is shown it.
        """
        episode = copy.copy(self)  # questions are asked at the same time; predictors are shared, the tool is not

        def found(query: str) -> str:
            try:
                return find(query)
            except CallFailedError as error:
                episode.failure = error  # DSPy makes an observation of whatever a tool raises
                raise

        described = self.tools["search"]
        tool = dspy.Tool(found, name=described.name, desc=described.desc, args=described.args)
        episode.tools = {**self.tools, "search": tool}
        return super(Acting, episode).forward(question=question, answer_style=answer_style)

    def _call_with_potential_trajectory_truncation(
        self, module: dspy.Module, trajectory: dict[str, Any], **inputs: Any
    ) -> dspy.Prediction:
        """As DSPy's: every call of an episode is made here."""
        if self.failure is not None:
            raise self.failure
        extracts = module is self.extract
        if extracts and self.must_finish and not _finished(trajectory):
            return dspy.Prediction(reasoning="", answer=None)
        shown = changed_texts(trajectory, neutralise)
        while True:
            try:
                return call(module.predict if extracts else module, **inputs, trajectory=self._format_trajectory(shown))
            except CallFailedError as error:
                if error.failure.cause != "context-window" or len(shown) <= 4:  # the four fields of the last turn
                    raise
                shown = self.truncate_trajectory(shown)


def _finished(trajectory: dict[str, Any]) -> bool:
    return any(name.startswith("tool_name_") and value == "finish" for name, value in trajectory.items())
