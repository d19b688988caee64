"""Chain-of-query generation: the plan, and how it goes on after what retrieval had to say."""

from __future__ import annotations

import dspy

from ...lm.call import call
from ...retrieval import Passage, Span
from ...signatures import AnswerStyle, CompleteChain, CorrectChain, PlanChain, Step
from ..tree import Node


class ChainOfQuery(dspy.Module):
    """The first round's chain (SearChain, section 3.1)."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = dspy.Predict(PlanChain)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[Step]:
        """The planned chain; steps that the LM did not answer have ``answer=None``."""
        chain: list[Step] = call(self.plan, question=question, answer_style=answer_style).chain
        return chain


class CorrectedChain(dspy.Module):
    """The chain that goes on from a node which a passage contradicts (verification, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.correct = dspy.Predict(CorrectChain)

    def forward(
        self, question: str, answer_style: AnswerStyle, solved: list[Node], node: Node, passage: Passage, span: Span
    ) -> list[Step]:
        """The node's query with the LM's new answer, and the steps that follow it."""
        reply = call(
            self.correct,
            question=question,
            answer_style=answer_style,
            solved=as_steps(solved),
            query=node.query,
            your_answer=node.answer,
            passages=[passage.shown()],
            reference_answer=span.text,
        )
        return [Step(query=node.query, answer=reply.new_answer), *reply.chain]


class CompletedChain(dspy.Module):
    """The chain that goes on from a node which the LM could not answer (completion, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.complete = dspy.Predict(CompleteChain)

    def forward(
        self, question: str, answer_style: AnswerStyle, solved: list[Node], node: Node, passage: Passage, span: Span
    ) -> list[Step]:
        """The node's query with the LM's answer, if it now has one, and the steps that follow it."""
        reply = call(
            self.complete,
            question=question,
            answer_style=answer_style,
            solved=as_steps(solved),
            query=node.query,
            passages=[passage.shown()],
            reference_answer=span.text,
        )
        return [Step(query=node.query, answer=reply.new_answer), *reply.chain]


def as_steps(nodes: list[Node]) -> list[Step]:
    """Nodes of a path, as the LM is shown them."""
    return [Step(query=node.query, answer=node.answer) for node in nodes]
