"""SearChain's steps: the chain of query, its continuation after a passage was found, and the traced answer."""

from __future__ import annotations

import dspy

from ...lm.call import call
from ...retrieval import Passage, Span
from ...signatures import AnswerStyle, CitedStep, CompleteChain, CorrectChain, PlanChain, Step, TraceAnswer
from ..references import numbers_of, settle_marks
from ..tree import Node, passages_of


class ChainOfQuery(dspy.Module):
    """The first round's chain (SearChain, section 3.1)."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = dspy.Predict(PlanChain)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[Step]:
        """Return the planned chain; a step that the LM could not answer has ``answer=None``."""
        chain: list[Step] = call(self.plan, question=question, answer_style=answer_style).chain
        return chain


class CorrectedChain(dspy.Module):
    """The chain from a node on whose answer a passage contradicts (verification, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.correct = dspy.Predict(CorrectChain)

    def forward(
        self, question: str, answer_style: AnswerStyle, solved: list[Node], node: Node, passage: Passage, span: Span
    ) -> list[Step]:
        """Return the node's query with the LM's new answer, and the steps after it."""
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
    """The chain from a node on that the LM could not answer (completion, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.complete = dspy.Predict(CompleteChain)

    def forward(
        self, question: str, answer_style: AnswerStyle, solved: list[Node], node: Node, passage: Passage, span: Span
    ) -> list[Step]:
        """Return the node's query with the LM's answer, if it now has one, and the steps after it."""
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


class Tracing(dspy.Module):
    """The answer, with the path that led to it as a text that cites its passages (SearChain, section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.trace = dspy.Predict(TraceAnswer)

    def forward(self, question: str, answer_style: AnswerStyle, path: list[Node]) -> tuple[str, str, list[Passage]]:
        """Return the answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``."""
        passages = passages_of(path)
        number = numbers_of(passages)
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


def as_steps(nodes: list[Node]) -> list[Step]:
    """Return the nodes of a path as the prompt shows them."""
    return [Step(query=node.query, answer=node.answer) for node in nodes]
