"""The answer to a subquestion, and its place in the tree."""

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
from ..references import first_of, numbered
from ..tree import Node, ReasoningTree
from . import StepModule
from .chain_of_query import as_steps
from .verdict import sentence_with


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
    """Answers a subquestion, given the answers to earlier ones.

    Args:
        retrieval: whether the answer is read from passages; otherwise it comes from memory.
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
        cited = first_of(reply.get("references") or [], shown_of(passages, reply))
        return Solution(query, answer, cited if answer else None, passages)


def add_solution(tree: ReasoningTree, path: list[Node], solution: Solution) -> Node:
    """Add the solved subquestion to the tree, below the path, and return its node.

    The LM is sure of every answer that it gives: it may leave one out.
    """
    known, passage = solution.answer is not None, solution.passage
    source = "unsolved" if not known else "completed" if passage else "lm"
    return tree.grow(
        path[-1] if path else None,
        round=len(path) + 1,
        query=solution.query,
        answer=solution.answer,
        sure=known,
        source=source,
        passage=passage,
        support=sentence_with(solution.answer, passage, solution.query),
    )
