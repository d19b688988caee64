"""Simpler questions as the simulated model asks, answers and judges them."""

from __future__ import annotations

from typing import Any

from ..common.placeholders import fill_in
from ..metrics import normalise
from .describing import described
from .gathering import Shown, gather, question_of, read_step, shown_passages
from .judging import Judge
from .mind import Mind, Reading
from .planning import steps_of
from .prompt import Prompt, Values
from .seeking import lacking_queries, next_query


def ask_follow_up(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The first step that is not answered; none when all are, or the whole question is, or so it is taken to be."""
    words, steps, solved = _so_far(mind, prompt)
    if _solves_whole(words, solved):
        return {"follow_up": None}
    judge = Judge.of(mind, prompt, salt)
    return {"follow_up": next_query(judge, words, steps, _shown(solved), solved)}


def propose_follow_ups(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What is not answered, the next step first; where the model asks badly, the whole question before it."""
    words, steps, solved = _so_far(mind, prompt)
    if _solves_whole(words, solved):
        return {"follow_ups": []}
    judge, count = Judge.of(mind, prompt, salt), prompt.values.get("count")
    before = [normalise(query) for query in solved]
    proposed = lacking_queries(judge, words, steps, _shown(solved), before)
    if proposed and not judge.asks_well(words, _shown(solved)):
        proposed = [*proposed[-1:], *proposed[:-1]]
    return {"follow_ups": proposed[: count if isinstance(count, int) else None]}


def judge_steps(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """Complete when every step is answered, or taken to be; as promising as the share of steps that are.

    An answer to the whole question at once completes it too, and promises half.
    """
    words, steps, solved = _so_far(mind, prompt)
    share = sum(bool(step["answer"]) for step in steps) / len(steps)
    whole = share < 1 and _solves_whole(words, solved)
    enough = bool(share) and Judge.of(mind, prompt, salt).takes_for_enough(words, _shown(solved))
    return {"complete": share == 1 or whole or enough, "promise": 0.5 if whole else round(0.1 + 0.8 * share, 2)}


def answer_subquestion(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What is read for the step in the passages, if there are any; else what the model remembers, or null."""
    words, steps, solved = _so_far(mind, prompt)
    mind = mind.sampled(salt)
    query = fill_in(str(prompt.values.get("query", "")), [answer or described(q) for q, answer in solved.items()])
    passages = shown_passages(prompt.values.get("passages"))
    answer, reference = _read(mind, words, steps, query, passages) if passages else (None, None)
    return {"query_answer": answer or mind.believes(query), "references": [reference] if reference else []}


def _read(
    mind: Mind, words: str, steps: list[dict[str, Any]], query: str, passages: list[Shown]
) -> tuple[str | None, int | None]:
    """As the step of the model's outline that it is, if it is one."""
    question = mind.world.question(words)
    index = next((n for n, step in enumerate(steps) if normalise(step["query"]) == normalise(query)), None)
    if question is not None and index is not None:
        if any(step.answer for step in question.steps):
            return read_step(mind, question, index, query, passages)
        whole = gather(mind, words, passages)[0]
        return whole["answer"], whole["reference"]
    return best_reading(mind, query, passages)


def best_reading(mind: Mind, query: str, passages: list[Shown]) -> tuple[str | None, int | None]:
    """The reading of a query that the model is most confident of, and the number of its passage."""
    readings = [(mind.reads(query, passage.text), passage.number) for passage in passages]
    nothing = (Reading("", 0.0), 0)
    best, number = max(readings, key=lambda found: (bool(found[0].span), found[0].confidence), default=nothing)
    return (best.span, number) if best.span else (None, None)


def _so_far(mind: Mind, prompt: Prompt) -> tuple[str, list[dict[str, Any]], dict[str, str | None]]:
    """The question's words, the steps of the outline with the answers that were given, and all that was asked."""
    words, _, _ = question_of(mind, prompt)
    solved: dict[str, str | None] = {}
    for step in steps_of(prompt.values.get("solved")):
        answer = step.get("answer")
        query = fill_in(str(step.get("query", "")), [known or described(q) for q, known in solved.items()])
        solved[query] = str(answer) if answer else None
    answers = {normalise(query): answer for query, answer in solved.items()}
    return words, gather(mind, words, [], memory=lambda query: answers.get(normalise(query))), solved


def _solves_whole(words: str, solved: dict[str, str | None]) -> bool:
    return any(answer and normalise(query) == normalise(words) for query, answer in solved.items())


def _shown(solved: dict[str, str | None]) -> list[Shown]:
    return [Shown(place, f"{query} {answer or ''}") for place, (query, answer) in enumerate(solved.items(), start=1)]
