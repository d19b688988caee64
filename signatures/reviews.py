"""Tree of Reviews: the review of the paragraphs of one path (section 3.2), and the fusion of the evidence (3.3)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field

from .answers import AnswerStyle, answer_style_field


class ReviewParagraphs(dspy.Signature):
    """Take the passages as one whole and judge what they do for the question, which needs several facts: first
    whether anything in them brings its answer nearer, then whether they hold everything that its answer needs.
    If they do, answer it from them alone; if not, write the search query for a fact that is still missing.
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    relevant: bool = dspy.OutputField(desc="true as soon as one useful fact is there")
    supported: bool = dspy.OutputField(desc="true only when no needed fact is missing")
    answer: str | None = dspy.OutputField(desc="null unless supported; in the answer style")
    next_query: str | None = dspy.OutputField(desc="null when supported; complete in itself")


class ReviewParagraphsCoT(dspy.Signature):
    """Take the passages as one whole and judge what they do for the question, which needs several facts: first
    whether anything in them brings its answer nearer, then whether they hold everything that its answer needs.
    If they do, answer it from them alone; if not, write the search query for a fact that is still missing.
    Think before you judge: what the passages say, and what is missing.
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    thoughts: str = dspy.OutputField(desc="a few sentences")
    relevant: bool = dspy.OutputField(desc="true as soon as one useful fact is there")
    supported: bool = dspy.OutputField(desc="true only when no needed fact is missing")
    answer: str | None = dspy.OutputField(desc="null unless supported; in the answer style")
    next_query: str | None = dspy.OutputField(desc="null when supported; complete in itself")


class CompleteParagraphs(dspy.Signature):
    """The passages lack something that the question's answer needs. Say what, then write it from memory,
    as a passage of an encyclopedia would have it.
    """

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    thoughts: str = dspy.OutputField(desc="what is missing")
    information: str = dspy.OutputField(desc="the missing passage, two or three sentences")


class Assertion(BaseModel):
    """What one accepted path says: its answer, and the numbers of its passages."""

    answer: str
    references: list[int] = Field(description="numbers of the passages that it rests on")


class FuseAnalyses(dspy.Signature):
    """Answer the question from the assertions, which may contradict each other: weigh them all, and what you know.
    After each fragment that rests on an assertion, write the numbers of its references as marks: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    assertions: list[Assertion] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class FuseParagraphs(dspy.Signature):
    """Answer the question from the passages; where they do not tell enough, from what you know.
    After each fragment that rests on a passage, write its number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class FuseEvidence(dspy.Signature):
    """Answer the question from the assertions and the passages that they refer to. Assertions may contradict each
    other: weigh them all by their passages, and by what you know; the same where nothing is asserted.
    After each fragment that rests on a passage, write its number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    assertions: list[Assertion] = dspy.InputField()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")
