"""What passages tell of a question, step by step, as the simulated model reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import Question
from ..metrics import contains, normalise
from .describing import written_out
from .holding import split_title, titled
from .mind import Mind, Reading
from .prompt import Prompt

_NUMBER = re.compile(r"^\[(\d+)\] ")


@dataclass(frozen=True)
class Shown:
    """A passage of a prompt: its number, as printed before it, or its place from 1; and ``title | text``."""

    number: int
    text: str


def shown_passages(value: Any) -> list[Shown]:
    """The passages of an input field, numbered or not."""
    rows = [str(row) for row in value] if isinstance(value, list) else []
    found = [(_NUMBER.match(row), row) for row in rows]
    return [
        Shown(int(number[1]), row[number.end() :]) if number else Shown(place, row)
        for place, (number, row) in enumerate(found, start=1)
    ]


def question_of(mind: Mind, prompt: Prompt) -> tuple[str, str, Question | None]:
    """Words and answer style of the question that a prompt is about, and the question itself if the world has it."""
    words, style = str(prompt.values.get("question", "")), str(prompt.values.get("answer_style", "short"))
    return words, style, mind.world.question(words)


def gather(
    mind: Mind, words: str, passages: Sequence[Shown], memory: Callable[[str], str | None] | None = None
) -> list[dict[str, Any]]:
    """The steps of the model's own outline, each with the answer that it reads, as `tracing.conclude` takes them.

    An answer that is read goes into the words of later steps, right or wrong; where there is none, it is described.
    A question whose steps have no annotated answers is one step, which all of its gold passages together answer.

    Args:
        mind: the model.
        words: the question's; one that the world does not have is a step by itself.
        passages: to read.
        memory: what fills in, right or wrong, the queries that the passages do not answer; nothing where None.

    Returns:
        For each step ``query``, ``answer`` (or None) and ``reference``, the number of the passage it was read in.
    """
    question = mind.world.question(words)
    if question is None or not any(step.answer for step in question.steps):
        answer, reference = _whole(mind, question, passages) if question else (None, None)
        answer = answer or (memory(words) if memory else None)
        return [{"query": words, "answer": answer, "reference": reference}]
    steps: list[dict[str, Any]] = []
    templates = mind.outline(question)
    for index in range(len(templates)):
        query = written_out(templates, [step["answer"] for step in steps], index)
        answer, reference = read_step(mind, question, index, query, passages)
        if answer is None and memory is not None:
            answer = memory(query)
        steps.append({"query": query, "answer": answer, "reference": reference})
    return steps


def read_step(
    mind: Mind, question: Question, index: int, query: str, passages: Sequence[Shown]
) -> tuple[str | None, int | None]:
    """The reading, of several passages, that the model is most confident of; the first of equals."""
    readings = [(mind.takes(question, index, query, passage.text), passage.number) for passage in passages]
    nothing = (Reading("", 0.0), 0)
    best, number = max(readings, key=lambda found: (bool(found[0].span), found[0].confidence), default=nothing)
    return (best.span, number) if best.span else (None, None)


def _whole(mind: Mind, question: Question, passages: Sequence[Shown]) -> tuple[str | None, int | None]:
    gold = [passage for passage in passages if titled(passage.text, question.gold_titles)]
    titles = {normalise(split_title(passage.text)[0]) for passage in gold}
    if not gold or titles < {normalise(title) for title in question.gold_titles}:
        return None, None
    if mind.chance("reads", normalise(question.question), *sorted(titles)) < mind.traits.reads:
        return question.answers[0], gold[-1].number
    return None, None


def missing_query(mind: Mind, words: str, steps: Sequence[dict[str, Any]], passages: Sequence[Shown]) -> str:
    """The query for the first fact that is not there.

    Where the outline is not known, it is the gold passage that is not there but named in the question or in those
    that are.
    """
    query = str(next((step["query"] for step in steps if not step["answer"]), words))
    question = mind.world.question(words)
    if question is None or query != words:
        return query
    read = [words, *(passage.text for passage in passages)]
    there = {normalise(split_title(passage.text)[0]) for passage in passages}
    lacking = [title for title in question.gold_titles if normalise(title) not in there]
    return next((f"{title}: {words}" for title in lacking if any(contains(text, title) for text in read)), words)
