"""Programs that solve subquestions one after another: their base, Least-to-most, Plan-and-Solve, Self-Ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy
from pydantic import Field

from ...common.placeholders import fill_in, unanswered, without_placeholders
from ...common.text import queries_in, query_or_none
from ...lm.call import call
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.subquestions import AskFollowUp, PlanSteps, SplitQuestion
from ..demonstrations import note
from ..modules.chain_of_query import Tracing, as_steps
from ..modules.subquestions import Solution, SubquestionAnswer, add_solution
from ..program import Program, ProgramSettings, answered
from ..references import distinct
from ..tree import Node, ReasoningTree


class Solving(Program):
    """A baseline that solves subquestions, and answers the question from their answers.

    If it searches, its settings have ``k``, the number of passages that a subquestion is answered from.
    """

    settings: Any

    def __init__(self, retriever: Retriever | None, settings: ProgramSettings | None):
        super().__init__(retriever, settings)
        self.subquestion_answer = SubquestionAnswer(retrieval=self.searches)
        self.tracing = Tracing()

    def solve(self, question: str, path: list[Node], query: str, k: int | None = None) -> Solution:
        """Answer a subquestion from k passages, given the earlier ones on the path."""
        passages: list[Passage] = self.retrieve(query, k or self.settings.k) if self.searches else []
        solution: Solution = self.subquestion_answer(question=question, solved=path, query=query, passages=passages)
        return solution

    def conclude(
        self, tree: ReasoningTree, answer_style: AnswerStyle, path: list[Node], solutions: Sequence[Solution]
    ) -> dspy.Prediction:
        """Return the answer that the path leads to; ``passages`` are all that any solution retrieved."""
        cited = self.tracing(question=tree.question, answer_style=answer_style, path=path)
        return answered(tree, *cited, passages=distinct([solution.found for solution in solutions]))


class StepsSettings(ProgramSettings):
    """How many subquestions are solved.

    Attributes:
        max_steps: at most; those beyond it are left out.
    """

    max_steps: int = Field(default=8, ge=1)


class SolvingInOrder(Solving):
    """Plans all subquestions before the first is solved; a later one may refer to earlier answers."""

    Settings = StepsSettings
    settings: StepsSettings
    splits: ClassVar[type[dspy.Signature]]

    def __init__(self, retriever: Retriever | None = None, settings: StepsSettings | None = None):
        super().__init__(retriever, settings)
        self.question_split = dspy.Predict(self.splits)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Solve the subquestions in order, and conclude; ``#1`` in one stands for the answer of the first."""
        path, solutions, answers = list[Node](), list[Solution](), list[str]()
        question = without_placeholders(tree.question)
        (written,) = call(self.question_split, question=question, answer_style=answer_style).values()
        for subquestion in queries_in(written)[: self.settings.max_steps]:
            query = fill_in(subquestion, answers)
            solutions.append(self.solve(tree.question, path, query))
            answers.append(solutions[-1].answer or unanswered(query))
            path.append(add_solution(tree, path, solutions[-1]))
        return self.conclude(tree, answer_style, path, solutions)


class LeastToMost(SolvingInOrder):
    """Least-to-most prompting (Zhou et al., ICLR 2023, arXiv 2205.10625): subquestions, the easiest first.

    It splits the question, then answers the subquestions in sequence, each given the answers before it. In the paper
    a subquestion may say "that person"; here it says ``#1``, which is filled in.
    """

    name = "least-to-most"
    searches = False
    splits = SplitQuestion


class PlanAndSolve(SolvingInOrder):
    """Plan-and-Solve (Wang et al., ACL 2023, arXiv 2305.04091): devise a plan, then carry it out step by step.

    The paper writes plan and solution in one reply. Here each step is a call of its own, as in the variant with
    retrieval, so that the two differ only in retrieval.
    """

    name = "plan-and-solve"
    searches = False
    splits = PlanSteps


class PlanAndSolveRetrievalSettings(StepsSettings):
    """How it plans and searches.

    Attributes:
        k: passages that a step is solved from.
    """

    k: int = Field(default=3, ge=1)


class PlanAndSolveRetrieval(PlanAndSolve):
    """Plan-and-Solve with retrieval (SearChain, table 1): passages are retrieved for each planned step."""

    name = "plan-and-solve-retrieval"
    searches = True
    Settings = PlanAndSolveRetrievalSettings
    settings: PlanAndSolveRetrievalSettings


class SelfAskSettings(ProgramSettings):
    """How long it asks.

    Attributes:
        max_follow_ups: follow-up questions at most.
    """

    max_follow_ups: int = Field(default=5, ge=1)


class SelfAsk(Solving):
    """Self-Ask without retrieval (Press et al., EMNLP Findings 2023, arXiv 2210.03350): follow-ups from memory.

    The paper writes follow-up questions and intermediate answers in one reply. Here each is a call of its own, as in
    the variant with retrieval, so that the two differ only in retrieval. A follow-up that was asked before is not asked
    again: the question is then answered.
    """

    name = "self-ask"
    searches = False
    Settings = SelfAskSettings
    settings: SelfAskSettings

    def __init__(self, retriever: Retriever | None = None, settings: SelfAskSettings | None = None):
        super().__init__(retriever, settings)
        self.follow_up = dspy.Predict(AskFollowUp)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Ask and answer until no follow-up is needed, and conclude."""
        path, solutions = list[Node](), list[Solution]()
        if first := getattr(self.settings, "first_search", 0):
            solutions.append(self.solve(tree.question, path, tree.question, first))
            if solutions[0].answer:
                path.append(add_solution(tree, path, solutions[0]))
        while len(path) < self.settings.max_follow_ups:
            inputs = dict[str, Any](question=tree.question, answer_style=answer_style, solved=as_steps(path))
            query = query_or_none((reply := call(self.follow_up, **inputs)).follow_up)
            note(reply, "asks" if query else "ends")
            if query is None or query.casefold() in {node.query.casefold() for node in path}:
                break
            solutions.append(self.solve(tree.question, path, query))
            path.append(add_solution(tree, path, solutions[-1]))
        return self.conclude(tree, answer_style, path, solutions)


class SelfAskRetrievalSettings(SelfAskSettings):
    """How it asks and searches.

    Attributes:
        k: passages that an intermediate answer is read from.
        first_search: passages that the question itself is answered from before it asks a follow-up; 0 for none. If
            they tell the answer, it is the first intermediate one.
    """

    k: int = Field(default=3, ge=1)
    first_search: int = Field(default=0, ge=0)


class SelfAskRetrieval(SelfAsk):
    """Self-Ask with a search engine (the paper's section 3.2): intermediate answers come from retrieved passages.

    The paper's engine gives a ready answer; here the LM reads it from the passages.
    """

    name = "self-ask-retrieval"
    searches = True
    Settings = SelfAskRetrievalSettings
    settings: SelfAskRetrievalSettings
