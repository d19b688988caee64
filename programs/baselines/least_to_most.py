"""Least-to-most prompting."""

from __future__ import annotations

from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ..modules import QuestionSplit
from .solving import SolvingInOrder, StepsSettings


class LeastToMost(SolvingInOrder):
    """Least-to-most prompting (Zhou et al., ICLR 2023, arXiv 2205.10625).

    Splits the question, then answers the subquestions in sequence, each given the answers before it. In the paper a
    subquestion may say "that person"; here it says ``#1``, which is filled in.

    Args:
        settings: see `StepsSettings`.
    """

    name = "least-to-most"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: StepsSettings | None = None):
        super().__init__(retriever, settings)
        self.question_split = QuestionSplit()

    def subquestions(self, question: str, answer_style: AnswerStyle) -> list[str]:
        """The first stage: decomposition."""
        split: list[str] = self.question_split(question=question, answer_style=answer_style)
        return split
