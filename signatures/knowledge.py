"""Knowledge: recalled, filtered and answered from (BlendFilter, sections 3.2 to 3.4)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field

from .answers import answer_style_field, question_field


class AnswerWithKnowledge(dspy.Signature):
    """Answer the question step by step from the passages, and from what you know where they are silent.
    Right after the words that a passage says, write its number as a mark: [1]. What you add from memory has no mark.
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")


class RecallPassage(dspy.Signature):
    """Write from memory the passage of an encyclopedia that answers the question."""

    question: str = question_field()
    passage: str = dspy.OutputField(desc="a few sentences, with names and dates")


class NameTopic(dspy.Signature):
    """Name the general topic that the question belongs to."""

    question: str = question_field()
    topic: str = dspy.OutputField(desc="a few words")


class PassageJudgement(BaseModel):
    """What one passage does for the question."""

    number: int = Field(description="of the passage")
    says: str = Field(description="what it tells about the question, in a few words; nothing, if it tells nothing")
    useful: bool


class JudgePassages(dspy.Signature):
    """Judge the passages one by one: does it tell something that the answer of the question needs? The answer may need
    several facts: a passage is useful, too, if it only tells who or what the question describes, so that the rest can
    be looked up with it. A passage about something else of the same name is not.
    """

    question: str = question_field()
    passages: list[str] = dspy.InputField()
    judgements: list[PassageJudgement] = dspy.OutputField(
        desc='one for each passage, in their order: [{"number": 1, "says": "…", "useful": true or false}, …]'
    )


class FilterKnowledge(dspy.Signature):
    """Judge the passages one by one and keep those that help to answer the question; keep none when none does."""

    question: str = question_field()
    passages: list[str] = dspy.InputField()
    reasons: str = dspy.OutputField(desc="for each passage in a few words: does it help, and why")
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")


class FilterKnowledgeOnTopic(dspy.Signature):
    """Set aside all that you know about the topic and go by the passages alone.
    Judge them one by one and keep those that help to answer the question.
    """

    question: str = question_field()
    topic: str = dspy.InputField(desc="what the question is about")
    passages: list[str] = dspy.InputField()
    reasons: str = dspy.OutputField(desc="for each passage in a few words: does it help, and why")
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")
