"""Reasoning that searches on its way: the next thought, the next query, the next piece of text."""

from __future__ import annotations

import dspy

from ...lm.call import call
from ...retrieval import Passage
from ...signatures import AnswerStyle, WriteNextThought, WriteOrSearch, WriteSearchQuery
from .numbering import numbered
from .paragraph_review import said


class NextThought(dspy.Module):
    """Writes the next sentence of the reasoning (IRCoT)."""

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteNextThought)

    def forward(self, question: str, answer_style: AnswerStyle, passages: list[Passage], thoughts: list[str]) -> str:
        """The sentence; the last one says that the answer is there."""
        shown = numbered(passages)
        reply = call(self.write, question=question, answer_style=answer_style, passages=shown, thoughts=thoughts)
        return str(reply.thought)


class SearchQuery(dspy.Module):
    """Writes the query of the next hop (DSP)."""

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteSearchQuery)

    def forward(self, question: str, passages: list[Passage]) -> str:
        """The query."""
        return str(call(self.write, question=question, passages=numbered(passages)).query)


class Writing(dspy.Module):
    """Writes on, up to where it calls for a search (Toolformer)."""

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteOrSearch)

    def forward(
        self, question: str, answer_style: AnswerStyle, written: list[str]
    ) -> tuple[str, str | None, str | None]:
        """What comes next; what to search for, None at the end of the text; the answer, None before it."""
        reply = call(self.write, question=question, answer_style=answer_style, written=written)
        return str(reply.continuation), said(reply.search), said(reply.answer)
