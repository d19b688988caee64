"""What Self-Ask, Least-to-most, Plan-and-Solve and Tree of Thoughts share: subquestions, solved one after another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import dspy
from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..demonstrations import TraceStep
from ..evidence import distinct
from ..modules import SubquestionAnswer, Tracing
from ..modules.paragraph_review import said
from ..modules.subquestions import Solution, filled_in
from ..program import answered
from ..tree import Node, ReasoningTree
from .baseline import Baseline, BaselineSettings


class Solving(Baseline):
    """Solves subquestions, and answers the question from what they came to."""

    def __init__(self, retriever: Retriever | None, settings: BaselineSettings | None):
        super().__init__(retriever, settings)
        self.subquestion_answer = SubquestionAnswer(retrieval=self.searches)
        self.tracing = Tracing()

    def find(self, query: str) -> list[Passage]:
        """What a subquestion is answered from; without retrieval, nothing."""
        return []

    def solve(self, question: str, path: list[Node], query: str) -> Solution:
        """Answer a subquestion, given those before it on the path."""
        solution: Solution = self.subquestion_answer(
            question=question, solved=path, query=query, passages=self.find(query)
        )
        return solution

    def conclude(
        self, tree: ReasoningTree, answer_style: AnswerStyle, path: list[Node], solutions: Sequence[Solution]
    ) -> dspy.Prediction:
        """The answer that the path leads to; ``passages`` are all that was retrieved for any solution."""
        answer, content, references = self.tracing(question=tree.question, answer_style=answer_style, path=path)
        return answered(
            tree, answer, content, references, passages=distinct([solution.found for solution in solutions])
        )

    def kind_of(self, step: TraceStep) -> str:
        """Of a subquestion, whether its answer was known."""
        _, _, reply = step
        if "query_answer" not in reply:
            return ""
        return "known" if said(reply.query_answer) else "unknown"


class StepsSettings(BaselineSettings):
    """How many subquestions are solved.

    Attributes:
        max_steps: at most; those beyond it are left out.
    """

    max_steps: int = Field(default=8, ge=1)


class SolvingInOrder(Solving):
    """All subquestions are there before the first is solved; a later one may stand on earlier answers."""

    Settings = StepsSettings
    settings: StepsSettings

    @abstractmethod
    def subquestions(self, question: str, answer_style: AnswerStyle) -> list[str]:
        """The subquestions in order, ``#n`` in them for the n-th answer."""

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Solve the subquestions in order, and conclude."""
        path, solutions = list[Node](), list[Solution]()
        for subquestion in self.subquestions(tree.question, answer_style)[: self.settings.max_steps]:
            query = filled_in(subquestion, [solution.answer for solution in solutions])
            solutions.append(self.solve(tree.question, path, query))
            path.append(add_solution(tree, path, solutions[-1]))
        return self.conclude(tree, answer_style, path, solutions)


def add_solution(tree: ReasoningTree, path: list[Node], solution: Solution) -> Node:
    """The solved subquestion as the path's next node."""
    source = "unsolved" if solution.answer is None else "completed" if solution.passage else "lm"
    return tree.grow(
        path[-1] if path else None,
        round=len(path) + 1,
        query=solution.query,
        answer=solution.answer,
        source=source,
        passage=solution.passage,
    )
