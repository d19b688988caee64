"""Knowledge: recalled, filtered and answered from (BlendFilter, sections 3.2 to 3.4)."""

from __future__ import annotations

import dspy

from .answers import AnswerStyle, answer_style_field


class AnswerWithKnowledge(dspy.Signature):
    """Answer the question step by step from the passages, and from what you know where they are silent.
    After each fragment that rests on a passage, write its number as a mark: [1].
    """

    question: str = dspy.InputField()
    answer_style: AnswerStyle = answer_style_field()
    passages: list[str] = dspy.InputField()
    final_content: str = dspy.OutputField(desc="the reasoning, with its marks")
    answer: str = dspy.OutputField(desc="the answer alone, in the answer style")


class RecallPassage(dspy.Signature):
    """Write from memory the passage of an encyclopedia that answers the question."""

    question: str = dspy.InputField()
    passage: str = dspy.OutputField(desc="a few sentences, with names and dates")


class NameTopic(dspy.Signature):
    """Name the general topic that the question belongs to."""

    question: str = dspy.InputField()
    topic: str = dspy.OutputField(desc="a few words")


class FilterKnowledge(dspy.Signature):
    """Judge the passages one by one and keep those that help to answer the question; keep none when none does."""

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")


class FilterKnowledgeOnTopic(dspy.Signature):
    """Set aside all that you know about the topic and go by the passages alone.
    Judge them one by one and keep those that help to answer the question.
    """

    question: str = dspy.InputField()
    topic: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")
