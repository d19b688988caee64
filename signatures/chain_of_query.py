"""SearChain: the chain of query (sections 3.1 and 3.2), and the final content that cites its passages (3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import dspy
from pydantic import BaseModel, BeforeValidator, Field

from ..common.text import text_or_none, unquoted
from .answers import QuestionInputs, passages_field, tried_field
from .roles import made_of


def _read(read: Callable[[str], str | None]) -> BeforeValidator:
    """Return a validator that reads a text, and leaves anything else to pydantic."""
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


OptionalAnswer = Annotated[str | None, _read(text_or_none)]
"""An answer that may be missing: null, or words that mean the same."""

Query = Annotated[str, _read(unquoted), Field(min_length=1)]
"""A search query, without quotation marks around the whole of it."""

_PLANNED = (
    'JSON: [{"query": "…", "recalled": "…" or null, "sure": true or false}, …]; recalled: your answer to the query '
    "from memory alone, even a guess; sure: true only if you are certain of it and of what is meant, supposing that "
    "the earlier ones are right"
)
_STEPS = 'JSON: [{"query": "…", "answer": "…" or null}, …]'


class Step(BaseModel):
    """One step of a chain: a search query and its answer."""

    query: Query
    answer: OptionalAnswer = None


class SolvedStep(Step):
    """A step of the chain that was looked up."""

    sure: bool = Field(default=True, description="false: the answer is a guess, or rests on one")


class PlannedStep(BaseModel):
    """One step of a plan: a search query, the answer that is recalled, and whether that answer is certain."""

    query: Query
    recalled: OptionalAnswer = None
    sure: bool = False


class PlanChain(QuestionInputs):
    """Plan the chain of search queries that leads to the answer of the question. Every query will be looked up in an
    encyclopedia; what you recall counts only where nothing is found. Each query asks for one fact that the answer
    needs. Order them so that each needs the answers of earlier ones only. Where a query needs such an answer, write #1
    for the answer of the first query, #2 for that of the second, and so on, also when you recall it. Apart from these
    signs, each query can be understood without the question. If the answer depends on a fact that the question does not
    name, such as a legal age, ask for it, too. Where several well-known things share a name, add which kind of thing is
    meant: the song …, the prince …. Where the question shortens a proper name (the Pact, the War), write the full name
    that is most likely meant. Add nothing else that you remember to a query. Where the question only describes a thing,
    one query asks for its name, with the whole description; if that holds another unnamed thing, ask for its name
    first. Of a claim such as "X was founded in May", ask when X was founded; only where a claim leads to no such
    question, ask whether it is true. Where the question can be read in several ways, take the most likely one.
    Comparing, calculating and concluding need no query.
    """

    planned_chain: list[PlannedStep] = made_of("the plan", dspy.OutputField(desc=_PLANNED))


class PlanWholeChain(QuestionInputs):
    """Plan the chain of search queries that leads to the answer of the question, simplest facts first, and answer
    every query from memory. Nothing will be looked up: give your best answer to each query, also when you are not sure
    of it. Each query is complete in itself and may use the answers before it.
    """

    answered_plan: list[Step] = made_of("the plan", dspy.OutputField(desc='JSON: [{"query": "…", "answer": "…"}, …]'))


class ReviseChain(QuestionInputs):
    """One query of the chain was looked up in an encyclopedia, and no passage answers it. Plan the chain anew from
    there: ask for the same fact in other words, or go another way to the answer of the question. Solved steps that are
    sure stand; one that is not sure is a guess, which may be why nothing was found: you may ask for that fact again, in
    other words. Each query asks for one fact. Write #1 for the answer of the first step of the chain, #2 for the
    second, and so on; apart from these signs, each query can be understood without the question. Your first query has
    the number after the solved steps. Repeat the later queries that are still needed.
    """

    solved: list[SolvedStep] = dspy.InputField(desc="the chain before the query, with the answers so far")
    failed_query: str = dspy.InputField(desc="the query that no passage answers")
    later_queries: list[str] = dspy.InputField(desc="the queries that stood after it, with numbers for answers")
    tried: list[str] = tried_field()
    passages: list[str] = passages_field("found for the query or a solved step", "names in them may help")
    rest: list[PlannedStep] = dspy.OutputField(desc=f"{_PLANNED}; [] when no other query can help")


class CorrectChain(QuestionInputs):
    """A passage seems to disagree with your answer to one query of the chain. Weigh the passage against what you know:
    keep your answer when both mean the same, or when the passage is about something else. Then plan the rest of the
    chain anew from there. Each query of it is complete in itself; answer those you are sure of.
    """

    solved: list[Step] = dspy.InputField(desc="the chain before the query, with the answers that are known by now")
    query: str = dspy.InputField(desc="the query that is looked up")
    your_answer: str = dspy.InputField(desc="your answer to the query so far")
    passages: list[str] = passages_field("found for the query")
    reference_answer: str = dspy.InputField(desc="what was read in the passage as the answer")
    later_steps: list[Step] = dspy.InputField(desc="how you had planned to go on after the query")
    new_answer: str = dspy.OutputField(desc="your answer to the query, kept or changed, in a few words")
    new_steps: list[Step] = dspy.OutputField(desc=f"{_STEPS}: the steps after the query; empty when none is left")


class CompleteChain(QuestionInputs):
    """You did not know the answer to one query of the chain, and a passage was looked up for it. Take the answer from
    the passage if it is there, and plan the rest of the chain anew from there. Each query of it is complete in itself;
    answer those you are sure of.
    """

    solved: list[Step] = dspy.InputField(desc="the chain before the query, with the answers that are known by now")
    query: str = dspy.InputField(desc="the query that is looked up")
    passages: list[str] = passages_field("found for the query")
    reference_answer: str = dspy.InputField(desc="what was read in the passage as the answer; may be empty")
    later_steps: list[Step] = dspy.InputField(desc="how you had planned to go on after the query")
    new_answer: str = dspy.OutputField(
        desc="the answer to the query, in a few words; empty when the passage does not give it and you are not sure"
    )
    new_steps: list[Step] = dspy.OutputField(desc=f"{_STEPS}: the steps after the query; empty when none is left")


class PlanSureChain(QuestionInputs):
    """Plan the chain of search queries that leads to the answer of the question, simplest facts first. Answer the
    queries whose answer you are sure of. Leave the answer of every other query null: it will be looked up, and you
    will plan the rest anew with what was found. Each query is complete in itself.
    """

    chain: list[Step] = made_of("the plan", dspy.OutputField(desc=_STEPS))


class TracedStep(BaseModel):
    """One step of the reasoning path as it is told: query and answer, and the passage that supports it."""

    query: str
    answer: str | None = None
    mark: int | None = Field(default=None, description="number of the passage that supports the answer")
    title: str | None = Field(default=None, description="the title of that passage")
    support: str | None = Field(default=None, description="the sentence of that passage")
    sure: bool = Field(default=True, description="false: the answer is a guess, or rests on one")


class TraceAnswer(QuestionInputs):
    """Tell in a few sentences how the steps lead to the answer of the question, in their order, then give the answer.
    Where a step has a mark, its answer stands in the passage of that number: write the mark, such as [1], at the end of
    the statement that tells this answer, and nowhere else. A step without a mark comes from memory: tell it without
    one. If a step is not sure, its answer is a guess or builds on one: say so once, where the guess begins. Where a
    step has no answer, say that it was not found. If the steps leave the answer open and the form allows a guess, add
    yours, and call it one. If two supports contradict each other, say which you follow. Add nothing else but what
    everybody knows, or what follows by calculation.
    """

    steps: list[TracedStep] = dspy.InputField(
        desc="in order; the answer is null if none was found; mark, title and support are null without a passage"
    )
    final_content: str = made_of(
        "facts in their order", dspy.OutputField(desc="how the steps lead to the answer, with their marks")
    )
    answer: str = dspy.OutputField(
        desc="the answer alone, in the form that it should have; your best guess if the steps leave it open, unless "
        "the form forbids one"
    )


class TraceBranches(TraceAnswer):
    """Tell in a few sentences how the steps lead to the answer of the question, in their order, then give the answer.
    Where a step has a mark, its answer stands in the passage of that number: write the mark, such as [1], at the end of
    the statement that tells this answer, and nowhere else. A step without a mark comes from memory. If a step is not
    sure, its answer is a guess or builds on one: say so once, where the guess begins. Where a step has no answer, say
    that it was not found. Give all answers that fit, with semicolons between. If the steps leave the answer open and
    the form allows a guess, add yours, and call it one. If two supports contradict each other, say which you follow.
    Add only what everybody knows, or what follows by calculation.
    """

    answer: str = dspy.OutputField(
        desc="the answer alone, in the form that it should have; else your guess, unless the form forbids one"
    )
