"""Paragraph review: what Tree of Reviews asks about the paragraphs of one path (ToR, section 3.2)."""

from __future__ import annotations

import dspy

from .answer_style import AnswerStyle, answer_style_field


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
