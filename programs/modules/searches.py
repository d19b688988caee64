"""Steps of reasoning that searches on its way: the next thought, or the next piece of text."""

from __future__ import annotations

import re
from typing import Any

import dspy

from ...common.sentences import sentences, without_item_mark
from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...metrics import marks_before_stops
from ...signatures import AnswerStyle
from ...signatures.searches import WriteNextThought, WriteOrSearch
from ..demonstrations import note
from ..references import without_loose_marks
from . import StepModule

_CALL = re.compile(r"\[Search\(((?:[^()\]→]|\([^()\]→]*\)?)*)", re.IGNORECASE)


class NextThought(StepModule):
    """Writes the next sentence of the reasoning (IRCoT). Of a reply with more sentences, only the first counts."""

    def __init__(self, signature: type[dspy.Signature] = WriteNextThought) -> None:
        super().__init__()
        self.write = dspy.Predict(signature)

    def forward(self, **inputs: Any) -> tuple[str, bool]:
        """Return the sentence, and whether it concludes with the answer; an empty one if the LM wrote none."""
        reply = call(self.write, **inputs)
        written = sentences(marks_before_stops(str(reply.thought)))
        thought = without_item_mark(written[0]) if written else ""
        concludes = "answer is" in thought.lower()
        kind = "ends" if concludes else "told by a passage" if without_loose_marks(thought, 0) != thought else "goes on"
        note(reply, kind, exemplary=len(written) == 1)
        return thought, concludes


class NextPiece(StepModule):
    """Writes the next piece of a text, up to where it calls for a search (Toolformer, Search-o1)."""

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


def search_in_text(query: str, result: str) -> str:
    """Return a search and its result as they stand in a text."""
    return f"[Search({query}) → {result}]"


def up_to_search(text: str) -> tuple[str, str | None]:
    """Return the text before the first search that the LM wrote into it, and that search's query, if there is one.

    The result that follows such a search is made up: nothing was searched for.
    """
    called = _CALL.search(text)
    return (text[: called.start()].rstrip(), query_or_none(called[1])) if called else (text, None)
