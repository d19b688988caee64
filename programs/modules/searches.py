"""Steps of reasoning that searches on its way: the next thought, query, piece of text, or action."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import dspy

from ...common.sentences import sentences, without_item_mark
from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...lm.failure import CallFailedError
from ...lm.guard import adapter_in_use, guarded
from ...metrics import marks_before_stops
from ...signatures import AnswerStyle
from ...signatures.searches import AnswerByActing, WriteNextThought, WriteOrSearch
from ..demonstrations import note
from ..references import without_loose_marks
from .step_module import StepModule

_CALL = re.compile(r"\[Search\(((?:[^()\]→]|\([^()\]→]*\)?)*)", re.IGNORECASE)
_SEARCH = "Finds passages of an encyclopedia, each behind its number. The query is complete in itself."  # in the prompt


class NextThought(StepModule):
    """The next sentence of the reasoning (IRCoT); of a reply that writes on, the first one alone."""

    def __init__(self, signature: type[dspy.Signature] = WriteNextThought) -> None:
        super().__init__()
        self.write = dspy.Predict(signature)

    def forward(
        self, question: str, answer_style: AnswerStyle, shown: list[str], thoughts: list[str], **more: str | list[str]
    ) -> tuple[str, bool]:
        """Return the sentence, and whether it concludes with the answer; an empty one if the LM wrote none."""
        given: dict[str, Any] = {
            "question": question,
            "answer_style": answer_style,
            "passages": shown,
            "thoughts": thoughts,
            **more,
        }
        reply = call(self.write, **given)
        written = sentences(marks_before_stops(str(reply.thought)))
        thought = without_item_mark(written[0]) if written else ""
        concludes = "answer is" in thought.lower()
        kind = "ends" if concludes else "told by a passage" if without_loose_marks(thought, 0) != thought else "goes on"
        note(reply, kind, exemplary=len(written) == 1)
        return thought, concludes


class Writing(StepModule):
    """The next piece of a text, up to where it calls for a search (Toolformer, Search-o1)."""

    def __init__(self, signature: type[dspy.Signature] = WriteOrSearch) -> None:
        super().__init__()
        self.write = dspy.Predict(signature)

    def forward(
        self, question: str, answer_style: AnswerStyle, written: list[str]
    ) -> tuple[str, str | None, str | None]:
        """Return the next piece; the query to search for, None at the end of the text; the answer, None before it."""
        reply = call(self.write, question=question, answer_style=answer_style, written=written)
        answer = text_or_none(reply.answer)
        continuation, called = up_to_search(str(reply.continuation))
        search = query_or_none(reply.search) or (None if answer else called)
        note(reply, "searches" if search else "ends")
        return continuation, search, answer


def up_to_search(text: str) -> tuple[str, str | None]:
    """Return a text up to where it writes a search into itself, as the prompt shows them, and the query, if any.

    What stands behind it would be taken for what a search told, but the LM made it up.
    """
    called = _CALL.search(text)
    return (text[: called.start()].rstrip(), query_or_none(called[1])) if called else (text, None)


def search(query: str) -> str:
    """Raise an error: each question brings a search of its own."""
    raise NotImplementedError(query)


class Acting(dspy.ReAct):
    """DSPy's ReAct whose calls go through `call`: retried, counted, and failing with a cause.

    Args:
        max_turns: how many thoughts with an action there may be.
        must_finish: whether there is an answer only if the LM finished by itself; otherwise one is always read from
            the trajectory.
        searches_first: whether the first turn is a search with the question, for which the LM is not asked.
    """

    def __init__(self, max_turns: int, must_finish: bool = False, searches_first: bool = False):
        tool = dspy.Tool(search, desc=_SEARCH)
        super().__init__(AnswerByActing, tools=[tool], max_iters=max_turns)
        self.must_finish, self.searches_first = must_finish, searches_first
        self.failure: Exception | None = None

    def forward(self, question: str, answer_style: AnswerStyle, find: Callable[[str], str]) -> dspy.Prediction:
        """Return ``trajectory``, ``reasoning`` and ``answer``, which is None if there is none.

        ``find`` returns what a query finds, as the prompt shows it.
        """
        episode = copy.copy(self)  # questions are asked at the same time: they share the predictors, not the tool

        def found(query: str) -> str:
            try:
                return find(query)
            except Exception as error:
                episode.failure = error  # DSPy turns whatever a tool raises into an observation
                raise

        described = self.tools["search"]
        tool = dspy.Tool(found, name=described.name, desc=described.desc, args=described.args)
        episode.tools = {name: _checked(one) for name, one in {**self.tools, "search": tool}.items()}
        return super(Acting, episode).forward(question=question, answer_style=answer_style)

    def _format_trajectory(self, trajectory: dict[str, Any]) -> str:
        """Return the trajectory as the prompt shows it; DSPy's own method makes a signature anew for each call."""
        shown: str = adapter_in_use().format_user_message_content(_signature_of(tuple(trajectory)), trajectory)
        return shown

    def _call_with_potential_trajectory_truncation(
        self, module: dspy.Module, trajectory: dict[str, Any], **inputs: Any
    ) -> dspy.Prediction:
        """Make one call of an episode, in place of DSPy's method of this name."""
        if self.failure is not None:
            raise self.failure
        extracts = module is self.extract
        if self.searches_first and not trajectory:
            search = {"next_tool_name": "search", "next_tool_args": {"query": inputs["question"]}}
            return dspy.Prediction(next_thought="I search for the question itself.", **search)
        if extracts and self.must_finish and not _finished(trajectory):
            return dspy.Prediction(reasoning="", answer=None)
        predict = module.predict if extracts else module
        shown = guarded(trajectory, predict.signature, adapter_in_use())  # before DSPy puts markers between the texts
        while True:
            try:
                reply = call(predict, **inputs, trajectory=self._format_trajectory(shown))
                note(reply, str(reply.get("next_tool_name") or ""))
                return reply
            except CallFailedError as error:
                if error.failure.cause != "context-window" or len(shown) <= 4:  # the four fields of the last turn
                    raise
                shown = self.truncate_trajectory(shown)


@lru_cache(maxsize=64)
def _signature_of(names: tuple[str, ...]) -> type[dspy.Signature]:
    signature: type[dspy.Signature] = dspy.Signature(f"{', '.join(names)} -> x")
    return signature


def _checked(tool: dspy.Tool) -> Callable[..., Any]:
    """Return the tool without its error for wrong arguments: DSPy would show the LM a traceback of this machine."""

    def use(**arguments: Any) -> Any:
        if arguments.keys() != tool.args.keys() or not all(isinstance(given, str) for given in arguments.values()):
            return f"{tool.name} takes {' and '.join(tool.args) or 'nothing'}, and each is a text."
        return tool(**arguments)

    return use


def _finished(trajectory: dict[str, Any]) -> bool:
    return any(name.startswith("tool_name_") and value == "finish" for name, value in trajectory.items())
