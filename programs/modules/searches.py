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
from .step_module import StepModule

_CALL = re.compile(r"\[Search\(((?:[^()\]→]|\([^()\]→]*\)?)*)", re.IGNORECASE)


class NextThought(StepModule):
    """The next sentence of the reasoning (IRCoT); of a reply that writes on, the first one alone."""

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


def search_in_text(query: str, result: str) -> str:
    """Return a search and what it told as a text shows them."""
    return f"[Search({query}) → {result}]"


def up_to_search(text: str) -> tuple[str, str | None]:
    """Return a text up to where it writes a search into itself, as `search_in_text` does, and the query, if any.

    What stands behind it would be taken for what a search told, but the LM made it up.
    """
    called = _CALL.search(text)
    return (text[: called.start()].rstrip(), query_or_none(called[1])) if called else (text, None)
