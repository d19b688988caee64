"""Simpler questions on the way to an answer, and their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from ...lm.call import call
from ...lm.window import shown_of
from ...retrieval import Passage
from ...signatures import (
    AnswerStyle,
    AnswerSubquestion,
    AnswerSubquestionFromPassages,
    AskFollowUp,
    JudgeSteps,
    PlanSteps,
    ProposeFollowUps,
    SplitQuestion,
)
from ..tree import Node
from .chain_of_query import as_steps
from .numbering import numbered
from .paragraph_review import said

_EARLIER = re.compile(r"#(\d+)")


class FollowUp(dspy.Module):
    """Asks the next subquestion (Self-Ask)."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict(AskFollowUp)

    def forward(self, question: str, answer_style: AnswerStyle, solved: list[Node]) -> str | None:
        """The follow-up question; None where none is needed."""
        reply = call(self.ask, question=question, answer_style=answer_style, solved=as_steps(solved))
        return said(reply.follow_up)


class FollowUps(dspy.Module):
    """Proposes several subquestions to go on with (Tree of Thoughts)."""

    def __init__(self) -> None:
        super().__init__()
        self.propose = dspy.Predict(ProposeFollowUps)

    def forward(self, question: str, answer_style: AnswerStyle, solved: list[Node], count: int) -> list[str]:
        """At most ``count`` different ones."""
        reply = call(self.propose, question=question, answer_style=answer_style, solved=as_steps(solved), count=count)
        proposed = [text for text in map(said, reply.follow_ups) if text]
        return list(dict.fromkeys(proposed))[:count]


class QuestionSplit(dspy.Module):
    """Splits a question into simpler ones (Least-to-most)."""

    def __init__(self) -> None:
        super().__init__()
        self.split = dspy.Predict(SplitQuestion)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[str]:
        """The subquestions, easiest first; ``#1`` in one stands for the answer of the first."""
        return list(call(self.split, question=question, answer_style=answer_style).subquestions)


class StepPlan(dspy.Module):
    """Plans what to find out (Plan-and-Solve)."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = dspy.Predict(PlanSteps)

    def forward(self, question: str, answer_style: AnswerStyle) -> list[str]:
        """The steps in order; ``#1`` in one stands for the answer of the first."""
        return list(call(self.plan, question=question, answer_style=answer_style).plan)


@dataclass(frozen=True)
class Solution:
    """What became of a subquestion.

    Attributes:
        query: the subquestion.
        answer: None where neither the LM nor the passages knew it.
        passage: the one that the answer rests on, if any.
        found: all that was retrieved.
    """

    query: str
    answer: str | None
    passage: Passage | None
    found: list[Passage]


class SubquestionAnswer(dspy.Module):
    """Answers a subquestion, given those before it.

    Args:
        retrieval: whether from passages; otherwise from memory.
    """

    def __init__(self, retrieval: bool) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerSubquestionFromPassages if retrieval else AnswerSubquestion)

    def forward(self, question: str, solved: list[Node], query: str, passages: list[Passage]) -> Solution:
        """Its answer, and the passage behind it."""
        reads = "passages" in self.answer.signature.input_fields
        shown: dict[str, Any] = {"passages": numbered(passages)} if reads else {}
        reply = call(self.answer, question=question, solved=as_steps(solved), query=query, **shown)
        answer = said(reply.query_answer)
        seen = shown_of(passages, reply)
        cited = [seen[n - 1] for n in reply.get("references") or [] if 1 <= n <= len(seen)]
        return Solution(query, answer, cited[0] if answer and cited else None, passages)


class StepsJudge(dspy.Module):
    """Judges a chain of solved subquestions (Tree of Thoughts)."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = dspy.Predict(JudgeSteps)

    def forward(self, question: str, answer_style: AnswerStyle, solved: list[Node]) -> tuple[bool, float]:
        """Whether the chain is complete, and how likely it leads to the right answer."""
        reply = call(self.judge, question=question, answer_style=answer_style, solved=as_steps(solved))
        return reply.complete, reply.promise


def filled_in(subquestion: str, answers: Sequence[str | None]) -> str:
    """The subquestion with ``#n`` replaced by the n-th answer, where there is one."""

    def answer(found: re.Match[str]) -> str:
        n = int(found[1])
        return (answers[n - 1] if 1 <= n <= len(answers) else None) or found[0]

    return _EARLIER.sub(answer, subquestion)
