"""SearChain's steps: the chain of query, its continuation after a search, and the traced answer."""

from __future__ import annotations

from typing import Any

import dspy

from ...common.placeholders import numbers_in, without_placeholders
from ...lm.call import call
from ...metrics import tells, without_marks
from ...retrieval import Passage, Span
from ...signatures import AnswerStyle
from ...signatures.chain_of_query import (
    CompleteChain,
    CorrectChain,
    PlanChain,
    PlannedStep,
    PlanSureChain,
    PlanWholeChain,
    ReviseChain,
    SolvedStep,
    Step,
    TraceAnswer,
    TraceBranches,
    TracedStep,
)
from ..demonstrations import note
from ..references import distinct, numbered, numbers_of, passages_of
from ..tree import Node, without_repeats
from . import StepModule
from .answers import CitedAnswer, cited_answer


class ChainOfQuery(StepModule):
    """The first round's chain, whose queries refer to earlier answers by number (SearChain, section 3.1)."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = dspy.Predict(PlanChain)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[PlannedStep]:
        """Return the planned chain; if the LM plans no query, the question is the only one."""
        reply = call(self.plan, question=without_placeholders(question), answer_style=answer_style)
        planned: list[PlannedStep] = reply.planned_chain
        recalls = {"sure" if step.sure else "unsure" if step.recalled else "nothing" for step in planned}
        note(reply, ", ".join(sorted(recalls)))
        return planned or [PlannedStep(query=without_placeholders(question))]


class PublishedChainOfQuery(StepModule):
    """The first round's chain as in the paper: queries written out, and answered if the LM is sure.

    Args:
        retrieval: off, every query has to be answered (table 1, SearChain w/o IR).
    """

    def __init__(self, retrieval: bool = True) -> None:
        super().__init__()
        self.plan = dspy.Predict(PlanSureChain if retrieval else PlanWholeChain)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[PlannedStep]:
        """Return the planned chain; the LM is sure of each answer that it gives."""
        reply = call(self.plan, question=question, answer_style=answer_style)
        steps: list[Step] = reply.chain if "chain" in reply else reply.answered_plan
        return as_planned(steps)


class RevisedChain(StepModule):
    """The rest of a chain, planned anew from a query that no passage answers."""

    def __init__(self) -> None:
        super().__init__()
        self.revise = dspy.Predict(ReviseChain)

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle,
        solved: list[Node],
        node: Node,
        later: list[Node],
        tried: list[str],
    ) -> list[PlannedStep]:
        """Return the steps that replace the node and the later ones; none if the LM has no better ones."""
        guesses = guessed(solved)
        reply = call(
            self.revise,
            question=without_placeholders(question),
            answer_style=answer_style,
            solved=[
                SolvedStep(query=step.query, answer=step.answer, sure=bool(step.answer) and step.id not in guesses)
                for step in solved
            ],
            failed_query=node.query,
            later_queries=[step.template or step.query for step in later],
            tried=tried,
            passages=numbered(distinct([node.found, passages_of(solved)])),
        )
        rest: list[PlannedStep] = reply.rest
        return rest


class Continuation(StepModule):
    """The chain from a node on that was looked up (section 3.2, verification and completion).

    Args:
        corrects: whether a passage contradicts the node's answer; off, the node has no answer.
    """

    def __init__(self, *, corrects: bool) -> None:
        super().__init__()
        self.go_on = dspy.Predict(CorrectChain if corrects else CompleteChain)

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle,
        solved: list[Node],
        node: Node,
        later: list[Node],
        passage: Passage,
        span: Span,
    ) -> list[PlannedStep]:
        """Return the node's query with the LM's answer, if it now has one, and the steps that follow it."""
        disputed: dict[str, Any] = (
            {"your_answer": node.answer} if "your_answer" in self.go_on.signature.input_fields else {}
        )
        reply = call(
            self.go_on,
            question=question,
            answer_style=answer_style,
            solved=as_steps(solved),
            query=node.query,
            passages=numbered([passage]),
            reference_answer=span.text,
            later_steps=as_steps(later),
            **disputed,
        )
        return as_planned([Step(query=node.query, answer=without_marks(reply.new_answer)), *reply.new_steps])


class Tracing(StepModule):
    """Tells the path and cites the passages that support it (SearChain, section 3.2).

    Args:
        branches: whether it may be several paths, one for each of several answers.
    """

    def __init__(self, *, branches: bool = False) -> None:
        super().__init__()
        self.trace = dspy.Predict(TraceBranches if branches else TraceAnswer)

    def forward(
        self, question: str, answer_style: AnswerStyle, path: list[Node], guesses: set[int] | None = None
    ) -> CitedAnswer:
        """Return the answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``.

        A mark is removed unless it stands at a step's answer and its passage supports that answer. ``guesses`` are the
        ids of the guessed steps, if the steps belong to several paths.
        """
        nodes, guesses = without_repeats(path), guessed(path) if guesses is None else guesses
        supported = [node for node in nodes if node.passage and node.support]
        passages = passages_of(supported)
        number = numbers_of(passages)
        steps = [
            TracedStep(
                query=node.query,
                answer=node.answer,
                mark=number[node.passage.id] if node.support and node.passage else None,
                title=node.passage.title or None if node.support and node.passage else None,
                support=node.support,
                sure=bool(node.answer) and node.id not in guesses,
            )
            for node in nodes
        ]

        def belongs(fragment: str, passage: Passage) -> bool:
            steps = [node for node in supported if node.passage and node.passage.id == passage.id]
            return any(tells(fragment, node.answer or "") for node in steps)

        kind = "guesses" if guesses else "remembers" if any(step.mark is None for step in steps) else "cites"
        inputs: dict[str, Any] = {"question": question, "answer_style": answer_style, "steps": steps}
        answer = cited_answer(self.trace, passages, None, belongs, kind, **inputs)
        return answer._replace(sure=not nodes or nodes[-1].id not in guesses)


def guessed(path: list[Node]) -> set[int]:
    """Return the ids of the nodes whose answer is a guess, or whose query was filled in with a guess."""
    guesses: set[int] = set()
    for node in path:
        needs = [path[number - 1].id for number in numbers_in(node.template or "") if number <= len(path)]
        if not (node.sure or node.support) or guesses & set(needs):
            guesses.add(node.id)
    return guesses


def as_steps(nodes: list[Node]) -> list[Step]:
    """Return nodes of a path in the form that the prompt shows."""
    return [Step(query=node.query, answer=node.answer) for node in nodes]


def as_planned(steps: list[Step]) -> list[PlannedStep]:
    """Return the steps as a plan: the LM is sure of each answer that it gives."""
    return [PlannedStep(query=step.query, recalled=step.answer, sure=step.answer is not None) for step in steps]
