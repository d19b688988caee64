"""Tracing: the final content with its marks, and the references that they point to."""

from __future__ import annotations

import dspy

from ...lm.call import call
from ...retrieval import Passage
from ...signatures import AnswerStyle, CitedStep, TraceAnswer
from ..citations import settle_marks
from ..tree import Node


class Tracing(dspy.Module):
    """Tells the path and cites its passages (SearChain, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.trace = dspy.Predict(TraceAnswer)

    def forward(self, question: str, answer_style: AnswerStyle, path: list[Node]) -> tuple[str, str, list[Passage]]:
        """The answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``."""
        passages = list({node.passage.id: node.passage for node in path if node.passage}.values())
        number = {passage.id: n for n, passage in enumerate(passages, start=1)}
        steps = [
            CitedStep(
                query=node.query,
                answer=node.answer,
                reference=number[node.passage.id] if node.passage else None,
            )
            for node in path
        ]
        reply = call(self.trace, question=question, answer_style=answer_style, steps=steps)
        final_content, references = settle_marks(reply.final_content, passages)
        return reply.answer, final_content, references
