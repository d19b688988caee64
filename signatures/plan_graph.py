"""A plan as data: queries with places for earlier answers, and comparisons (after PyRAG)."""

from __future__ import annotations

from typing import Literal

import dspy
from pydantic import BaseModel, Field

from .answers import passages_field, question_field
from .chain_of_query import OptionalAnswer, Query


class GraphStep(BaseModel):
    """One step of a plan."""

    asks: Literal["lookup", "earliest", "latest", "smallest", "largest", "same"] = "lookup"
    query: Query = Field(
        description="of a lookup: asks for one fact, with #1 for the answer of step 1; of a comparison: what is "
        'compared, such as "A: #1; B: #2"'
    )


class PlanLookups(dspy.Signature):
    """Plan the steps that lead to the answer of the question. A lookup asks an encyclopedia for one fact and can be
    understood by itself. Let it need the answer of another step only where it must: lookups that need none are made at
    the same time. A comparison of what lookups found is a step of its own.
    """

    question: str = question_field()
    steps_planned: list[GraphStep] = dspy.OutputField(desc="a step comes after those whose answers it needs")


class LookedUp(BaseModel):
    """What the passages answer to one query."""

    answer: OptionalAnswer = Field(default=None, description="a short phrase; null if no passage tells it")
    passage: int = Field(default=0, description="number of the passage that tells it")


class AnswerLookups(dspy.Signature):
    """Answer each query from the passages."""

    lookups: list[str] = dspy.InputField(desc="queries, each for one fact")
    passages: list[str] = passages_field()
    looked_up: list[LookedUp] = dspy.OutputField(desc="one for each query, in their order")
