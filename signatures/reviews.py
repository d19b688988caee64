"""Tree of Reviews: the review of the paragraphs of one path (section 3.2), and the fusion of the evidence (3.3)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, Field

from .answers import QuestionInputs, answer_field, passages_field, question_field, sure_field
from .roles import made_of

PROVEN_ITEMS = (
    "every answer that these passages prove, also while a fact for others is missing: full names, dates, numbers or "
    "other short phrases, with semicolons between them"
)
"""The form of the answer of one path of several, where the question has several answers."""


class ReviewPath(QuestionInputs):
    """Write down the facts that the answer needs and the passages tell, also a later one whose link to the question you
    know or can guess. What follows plainly from a passage counts; part of a list or range does not stand for the whole.
    What a question takes for granted needs no proof, unless it tells which of several things is meant; what a claim
    says needs proof. If no fact is missing, answer from the passages alone; a rough date or place is an answer. Where
    the question can be read in several ways, take the most likely one.
    """

    tried: list[str] = dspy.InputField(desc="queries looked up besides the question; asking one again finds the same")
    passages: list[str] = passages_field("found on this way so far", "the last one is new")
    facts: str = made_of(
        "facts in their order", dspy.OutputField(desc="each with the number of its passage: [1]; empty without any")
    )
    last_adds: bool = dspy.OutputField(desc="true if the last passage gives or confirms one of these facts")
    next_query: str = dspy.OutputField(
        desc="asks for the first missing fact alone; if that was tried, ask in other words or for the next one; no "
        "names but those of the question, the facts and the queries tried; empty when none is missing"
    )
    guess: str = dspy.OutputField(
        desc="what an encyclopedia might say of that fact, one or two sentences from memory, only to search with; may "
        "be empty"
    )
    supported_answer: str = dspy.OutputField(
        desc="the answer alone, without marks, in the form that it should have; empty while a fact is missing"
    )


class ReviewParagraphs(QuestionInputs):
    """Take the passages as one whole and judge what they do for the question, which needs several facts: first
    whether anything in them brings its answer nearer, then whether they hold everything that its answer needs.
    If they do, answer it from them alone; if not, write the search query for a fact that is still missing.
    """

    passages: list[str] = passages_field()
    relevant: bool = dspy.OutputField(desc="true as soon as one useful fact is there")
    supported: bool = dspy.OutputField(desc="true only when no needed fact is missing")
    analysis: str = made_of(
        "facts reviewed",
        dspy.OutputField(
            desc="the facts that lead to the answer, each with the number of its passage: [1]; empty unless supported"
        ),
    )
    answer: str | None = dspy.OutputField(desc="null unless supported; in the form that it should have")
    next_query: str | None = dspy.OutputField(desc="null when supported; complete in itself")


class ReviewParagraphsCoT(QuestionInputs):
    """Take the passages as one whole and judge what they do for the question, which needs several facts: first
    whether anything in them brings its answer nearer, then whether they hold everything that its answer needs.
    If they do, answer it from them alone; if not, write the search query for a fact that is still missing.
    Think before you judge: what the passages say, and what is missing.
    """

    passages: list[str] = passages_field()
    thoughts: str = made_of("facts reviewed", dspy.OutputField(desc="a few sentences"))
    relevant: bool = dspy.OutputField(desc="true as soon as one useful fact is there")
    supported: bool = dspy.OutputField(desc="true only when no needed fact is missing")
    answer: str | None = dspy.OutputField(desc="null unless supported; in the form that it should have")
    next_query: str | None = dspy.OutputField(desc="null when supported; complete in itself")


class CompleteParagraphs(dspy.Signature):
    """The passages lack something that the question's answer needs. Say what, then write it from memory,
    as a passage of an encyclopedia would have it.
    """

    question: str = question_field()
    passages: list[str] = passages_field()
    thoughts: str = dspy.OutputField(desc="what is missing")
    information: str = dspy.OutputField(desc="the missing passage, two or three sentences")


class Assertion(BaseModel):
    """What one path of the search says: the facts that it found, its answer, and the numbers of its passages."""

    analysis: str
    answer: str
    references: list[int] = Field(description="numbers of the passages that it rests on")


_ASSERTIONS = (
    "what was found on each way that led to an answer: facts with the numbers of their passages, the answer, and the "
    "numbers of all its passages; may be empty"
)


class FuseAnalyses(QuestionInputs):
    """Answer the question from the assertions, which may contradict each other: weigh them all, and what you know.
    Right after the words that an assertion says, write the number of the passage that it has them from as a mark: [1].
    """

    assertions: list[Assertion] = dspy.InputField(desc=_ASSERTIONS)
    final_content: str = made_of(
        "facts in their order", dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    )
    answer: str = answer_field()


class FuseParagraphs(QuestionInputs):
    """Answer the question from the passages; where they do not tell enough, from what you know.
    Right after the words that a passage says, write its number as a mark: [2], or [1][3] for two passages. What you
    know or conclude yourself has no mark.
    """

    passages: list[str] = passages_field()
    final_content: str = made_of(
        "facts among passages", dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    )
    answer: str = answer_field()


class FuseEvidence(QuestionInputs):
    """Answer the question from the assertions and the passages that they refer to. Assertions may contradict each
    other: weigh them by their passages, and by what you know. Where there are none, answer from the passages, and from
    what you know where they are silent; say so where you guess. Right after the words that a passage says, write its
    number as a mark: [2], or [1][3] for two passages. What you know or conclude yourself has no mark.
    """

    assertions: list[Assertion] = dspy.InputField(desc=_ASSERTIONS)
    passages: list[str] = passages_field()
    final_content: str = made_of(
        "facts in their order", dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    )
    answer: str = answer_field()


class FuseOrGuess(FuseEvidence):
    """Answer the question from the assertions and the passages that they refer to. Assertions may contradict each
    other: weigh them by their passages, and by what you know. Where there are none, answer from the passages, and from
    what you know where they are silent. Right after the words that a passage says, write its number as a mark: [2].
    What you know, conclude or guess has no mark; say where you guess.
    """

    sure: bool = sure_field()
