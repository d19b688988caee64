"""Questions that are written from passages, and what is asked of them before they are kept."""

from __future__ import annotations

from typing import Literal

import dspy
from pydantic import BaseModel, Field

from .answers import QuestionInputs, passages_field

QuestionKind = Literal["bridge", "single", "list", "comparison", "absent"]

_PATH = (
    "at the end of a path through two passages or more: each step after the first starts from the answer of an earlier "
    'one, and no passage is enough alone ("The daughter of B is A" tells also who the mother of A is)'
)
ASKED: dict[QuestionKind, str] = {
    "bridge": f"one name, date, number or short phrase, {_PATH}",
    "single": "one name, date, number or short phrase",
    "list": f"all things of one kind that one passage lists, two or more; they may stand {_PATH}",
    "comparison": "which of two things is the earlier, larger, longer … by values that two passages tell, one step for "
    "each; the question names both, and the answer is one of them",
    "absent": "something that one would expect to find there, and that no passage tells; the question takes nothing "
    "for granted that only they tell (such as a profession, to ask for the employer); there is no answer",
}
"""How a prompt describes each kind of question."""


class WrittenStep(BaseModel):
    """One fact on the way to the answer of a written question."""

    question: str = Field(description="asks for one fact; with #1 for the answer of step 1")
    answer: str = Field(default="", description="as the passage writes it")
    passage: int = Field(description="number of the passage that tells it")
    quote: str = Field(default="", description="unbroken stretch of its text that tells it")


class WriteQuestion(dspy.Signature):
    """Write a question that somebody might well ask who wants to know something and has never seen the passages: one
    natural sentence about one matter, clear by itself.

    It names what the first step starts from, says in plain words what leads on from there, and names no answer of a
    step that another step starts from: that is what the person does not know, not a usual name that is hidden behind a
    description. Each step has one answer, not one of several that fit; only the last of a list has more. It need not
    use all passages, only those that belong together.

    Be choosy, there are plenty of passages: where these give only a question that nobody would ask, such as one that
    glues together what has little to do with each other, leave the question empty.
    """

    passages: list[str] = passages_field("linked, or on one matter")
    asks_for: str = dspy.InputField(desc="what the answer is")
    steps: list[WrittenStep] = dspy.OutputField(
        desc="in the order of reasoning; if no passage tells the answer, the last step has no answer and no quote"
    )
    written_question: str = dspy.OutputField()
    answers: list[str] = dspy.OutputField(desc="the answer; all of a list; empty if there is none")


class HearQuestion(QuestionInputs):
    """Hear the question as somebody who does not know where it comes from. Answer it only if you know the answer."""

    asker: str = dspy.OutputField(desc="who would want to know this, and what for")
    odd: str = dspy.OutputField(
        desc="what is unclear by itself or taken for granted, though not a name that you do not know, and what nobody "
        "would want to know or say so; empty if nothing"
    )
    well_asked: bool = dspy.OutputField(desc="whether that person would ask it in these words")
    remembered: str = dspy.OutputField(desc="the answer alone; empty if you do not know it for certain")
