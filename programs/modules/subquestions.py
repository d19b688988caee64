"""The answers to simpler questions on the way to an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dspy

from ...common.text import text_or_none
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import without_marks
from ...retrieval import Passage
from ...signatures.subquestions import AnswerSubquestion, AnswerSubquestionFromPassages
from ..demonstrations import note
from ..references import numbered
from ..tree import Node
from .chain_of_query import as_steps
from .step_module import StepModule


@dataclass(frozen=True)
class Solution:
    """The result of a subquestion.

    Attributes:
        query: the subquestion.
        answer: None if neither the LM nor the passages knew it.
        passage: the one that supports the answer, if any.
        found: all passages that were retrieved.
    """

    query: str
    answer: str | None
    passage: Passage | None
    found: list[Passage]


class SubquestionAnswer(StepModule):
    """The answer to a subquestion, given those before it.

    Args:
        retrieval: whether it is read from passages; otherwise it comes from memory.
    """

    def __init__(self, retrieval: bool) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerSubquestionFromPassages if retrieval else AnswerSubquestion)

    def forward(self, question: str, solved: list[Node], query: str, passages: list[Passage]) -> Solution:
        """Return its answer, and the passage that supports it."""
        reads = "passages" in self.answer.signature.input_fields
        shown: dict[str, Any] = {"passages": numbered(passages)} if reads else {}
        reply = call(self.answer, question=question, solved=as_steps(solved), query=query, **shown)
        answer = text_or_none(without_marks(reply.query_answer or ""))
        note(reply, "known" if answer else "unknown")
        seen = shown_of(passages, reply)
        cited = [seen[n - 1] for n in reply.get("references") or [] if 1 <= n <= len(seen)]
        return Solution(query, answer, cited[0] if answer and cited else None, passages)
