"""SearChain: the chain of query (sections 3.1 and 3.2), and the final content that cites its passages (3.2)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field, field_validator

from ..common.text import NULL
from .answers import AnswerStyle, answer_style_field


class Step(BaseModel):
    """One node of a chain of query: a search query and its answer, if the LM knows it."""

    query: str = Field(
        min_length=1, description="complete in itself: names what it asks about, never 'it' or 'that person'"
    )
    answer: str | None = Field(default=None, description="null when you are not sure of it")

    @field_validator("answer", mode="before")
    @classmethod
    def _null_in_words(cls, answer: object) -> object:
        """Turn null written as a word into None: DSPy's chat adapter takes it for text in a ``str | None`` field."""
        return None if isinstance(answer, str) and answer.strip().lower() in NULL else answer


class PlanChain(dspy.Signature):
    """Lay out the whole chain of search queries that leads to the answer of the question, simplest facts first.
    Answer the queries whose answer you are sure of; leave the answer of every other query null.
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    chain: list[Step] = dspy.OutputField()


class CorrectChain(dspy.Signature):
    """A passage disagrees with your answer to one query of the chain. Weigh the passage against what you know,
    give your answer to that query again, changed or not, and lay out the rest of the chain anew from there.
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    solved: list[Step] = dspy.InputField(desc="the chain before the query")
    query: str = dspy.InputField()
    your_answer: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    reference_answer: str = dspy.InputField(desc="what the passage gives as the answer")
    new_answer: str = dspy.OutputField(desc="your answer to the query, in a few words unless the style is long")
    chain: list[Step] = dspy.OutputField(desc="the queries after this one; empty when none is left")


class CompleteChain(dspy.Signature):
    """You did not know the answer to one query of the chain. Take it from the passage if it is there,
    and lay out the rest of the chain anew from there.
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    solved: list[Step] = dspy.InputField(desc="the chain before the query")
    query: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    reference_answer: str = dspy.InputField(desc="what was read in the passage as the answer; may be empty")
    new_answer: str | None = dspy.OutputField(desc="null when neither the passage nor you can answer")
    chain: list[Step] = dspy.OutputField(desc="the queries after this one; empty when none is left")


class CitedStep(BaseModel):
    """One node of the reasoning path as it is told: query, answer, and the number of the passage behind it."""

    query: str
    answer: str | None = None
    reference: int | None = Field(default=None, description="number of the supporting passage")


class TraceAnswer(dspy.Signature):
    """Tell how the steps lead to the answer of the question, in order, and give the answer.
    After each fragment that rests on a step with a reference, write that reference's number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    steps: list[CitedStep] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
