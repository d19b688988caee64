"""Knowledge: recalled, filtered and answered from (BlendFilter, sections 3.2 to 3.4)."""

from __future__ import annotations

import dspy
from pydantic import BaseModel

from .answers import QuestionInputs, answer_field, passages_field, question_field, sure_field
from .roles import made_of


class AnswerWithKnowledge(QuestionInputs):
    """Answer the question step by step from the passages, and from what you know where they are silent. Where the
    question can be read in several ways, take the one that the passages answer.
    Right after the words that a passage says, write its number as a mark: [2], or [1][3] for two passages. What you
    know or conclude yourself has no mark. Say so where you guess.
    """

    passages: list[str] = passages_field()
    final_content: str = made_of(
        "facts among passages", dspy.OutputField(desc="the reasoning in a few sentences, with its marks")
    )
    answer: str = answer_field()


class AnswerOrGuess(AnswerWithKnowledge):
    """Answer the question step by step from the passages, and from what you know where they are silent. Where the
    question can be read in several ways, take the one that the passages answer.
    Right after the words that a passage says, write its number as a mark: [2]. What you know, conclude or guess has no
    mark; say where you guess.
    """

    sure: bool = sure_field()


class DraftAnswer(QuestionInputs):
    """Write down the facts that the answer needs and the passages tell. What follows plainly from a passage counts. If
    no fact is missing, answer from the passages alone. Where the question can be read in several ways, take the one
    that the passages answer.
    """

    passages: list[str] = passages_field()
    facts: str = made_of(
        "facts among passages", dspy.OutputField(desc="each with the number of its passage: [1]; empty without any")
    )
    missing: str = dspy.OutputField(
        desc="a question for each missing fact, with the names that are known; empty when none is missing"
    )
    recalled: str = dspy.OutputField(desc="what you recall of these, no guesses, only to search with; may be empty")
    supported_answer: str = dspy.OutputField(
        desc="the answer alone, without marks, in the form that it should have; empty while a fact is missing"
    )


class RecallPassage(dspy.Signature):
    """Write from memory the passage of an encyclopedia that answers the question: first who or what the question
    describes, then what it asks about it. For a claim, tell what is true of its subject, also where the claim is wrong.
    The passage only serves to search with: a likely guess helps, an invented name or date does not. Where the question
    can mean several things, take the most likely one.
    """

    question: str = question_field()
    passage: str = made_of(
        "facts in their order", dspy.OutputField(desc="a few sentences, with the names and dates that you recall")
    )


class NameTopic(dspy.Signature):
    """Name the general topic that the question belongs to."""

    question: str = question_field()
    topic: str = dspy.OutputField(desc="a few words")


class PassageJudgement(BaseModel):
    """What one passage does for the question."""

    number: int
    says: str
    useful: bool


class JudgePassages(dspy.Signature):
    """Judge the passages one by one: does each tell a fact that the answer to the question needs? A passage is useful,
    too, if it only tells who or what the question describes, or if it tells a later fact whose link to the question you
    know or can guess. A passage about something else of the same name is not useful. When you hesitate whether a fact
    is needed, call it useful.
    """

    question: str = question_field()
    passages: list[str] = passages_field()
    judgements: list[PassageJudgement] = made_of(
        "facts among passages",
        dspy.OutputField(
            desc="JSON, one for each passage, in their order: "
            '[{"number": 1, "says": "…", "useful": true or false}, …]; '
            "says: the fact in it that the answer needs, in a short sentence with names; empty if there is none"
        ),
    )


class FilterKnowledge(dspy.Signature):
    """Judge the passages one by one and keep those that help to answer the question; keep none when none does."""

    question: str = question_field()
    passages: list[str] = passages_field()
    reasons: str = dspy.OutputField(desc="for each passage in a few words: does it help, and why")
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")


class FilterKnowledgeOnTopic(dspy.Signature):
    """Set aside all that you know about the topic and go by the passages alone.
    Judge them one by one and keep those that help to answer the question.
    """

    question: str = question_field()
    topic: str = dspy.InputField(desc="what the question is about")
    passages: list[str] = passages_field()
    reasons: str = dspy.OutputField(desc="for each passage in a few words: does it help, and why")
    kept: list[int] = dspy.OutputField(desc="the numbers of the passages that are kept")
