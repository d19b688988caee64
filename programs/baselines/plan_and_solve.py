"""Plan-and-Solve, from memory and with retrieval."""

from __future__ import annotations

from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..modules import StepPlan
from .solving import SolvingInOrder, StepsSettings


class PlanAndSolve(SolvingInOrder):
    """Plan-and-Solve (Wang et al., ACL 2023, arXiv 2305.04091): devise a plan, then carry it out step by step.

    The paper writes plan and solution in one reply; here each step is a call of its own, the same calls that the
    variant with retrieval makes, so that the two differ in retrieval alone.

    Args:
        settings: see `StepsSettings`.
    """

    name = "plan-and-solve"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: StepsSettings | None = None):
        super().__init__(retriever, settings)
        self.step_plan = StepPlan()

    def subquestions(self, question: str, answer_style: AnswerStyle) -> list[str]:
        """The plan."""
        plan: list[str] = self.step_plan(question=question, answer_style=answer_style)
        return plan


class PlanAndSolveRetrievalSettings(StepsSettings):
    """How it plans and searches.

    Attributes:
        k: passages that a step is solved from.
    """

    k: int = Field(default=3, ge=1)


class PlanAndSolveRetrieval(PlanAndSolve):
    """Plan-and-Solve with retrieval (SearChain, table 1): each planned step retrieves for itself.

    Args:
        retriever: finds the passages.
        settings: see `PlanAndSolveRetrievalSettings`.
    """

    name = "plan-and-solve-retrieval"
    searches = True
    Settings = PlanAndSolveRetrievalSettings
    settings: PlanAndSolveRetrievalSettings

    def find(self, query: str) -> list[Passage]:
        """The passages for a planned step."""
        return self.retrieve(query, self.settings.k)
