"""Simpler questions as the simulated model asks, answers and judges them, and sentences that it verifies by asking."""

from __future__ import annotations

from ...common.placeholders import fill_in
from ...metrics import contains, normalise
from ..asked import Asked, Step, pick_surest
from ..passages import Shown
from ..phrases import describe, find_query, find_stated, write_fact
from ..prompt import Values

Solved = dict[str, str | None]


def ask_follow_up(asked: Asked) -> Values:
    """Ask the first step that is not answered; none where the model takes the question for solved."""
    steps, solved = _so_far(asked)
    return {"follow_up": None if _solves_whole(asked, solved) else asked.next_query(steps, _show(solved), solved)}


def propose_follow_ups(asked: Asked) -> Values:
    """Return what is not answered, the next step first; where the model asks badly, the whole question before it."""
    steps, solved = _so_far(asked)
    if _solves_whole(asked, solved):
        return {"follow_ups": []}
    proposed, count = asked.missing_queries(steps, _show(solved), solved), asked.prompt.values.get("count")
    if proposed and not asked.judge.asks_well(_show(solved)):
        proposed = [*proposed[-1:], *proposed[:-1]]
    return {"follow_ups": proposed[: count if isinstance(count, int) else None]}


def judge_steps(asked: Asked) -> Values:
    """Judge the steps: complete when every one is answered, or seems to be; as promising as the share that are.

    An answer to the whole question at once completes it too, and promises half.
    """
    steps, solved = _so_far(asked)
    share = sum(bool(step.answer) for step in steps) / len(steps)
    whole = share < 1 and _solves_whole(asked, solved)
    enough = bool(share) and asked.judge.takes_for_enough(_show(solved))
    return {"complete": share == 1 or whole or enough, "promise": 0.5 if whole else round(0.1 + 0.8 * share, 2)}


def answer_subquestion(asked: Asked) -> Values:
    """Answer with what is read for the step in the passages, if anything is; else from memory, or null."""
    asked = asked.sample()
    steps, solved = _so_far(asked)
    query = fill_in(asked.prompt.given("query"), _known(solved))
    answer, reference = _read(asked, steps, query) if asked.passages else (None, None)
    return {"query_answer": answer or asked.mind.believes(query), "references": [reference] if reference else []}


def ask_to_verify(asked: Asked) -> Values:
    """Ask again what the sentence answers; where the model asks badly, the whole question."""
    sentence = asked.prompt.given("sentence")
    asks_well = asked.judge.asks_well([Shown(1, sentence)])
    return {"query": find_query(sentence) if asks_well else asked.words}


def edit_sentence(asked: Asked) -> Values:
    """Write what is read for the query, if the model does not trust its own sentence more; else that sentence."""
    asked = asked.sample()
    query, sentence, mind = asked.prompt.given("query"), asked.prompt.given("sentence"), asked.mind
    answer, reference = pick_surest([(mind.reads(query, passage.text), passage.number) for passage in asked.passages])
    before = find_stated(query, [sentence])
    if answer is None or reference is None:
        return {"edited": sentence, "references": []}
    if before and contains(before, answer):
        return {"edited": sentence, "references": [reference]}
    trusts = mind.traits.chance("trusts", normalise(query), normalise(answer)) < mind.traits.trusts
    if before and not trusts:
        return {"edited": sentence, "references": []}
    return {"edited": write_fact(query, answer), "references": [reference]}


def _read(asked: Asked, steps: list[Step], query: str) -> tuple[str | None, int | None]:
    """Return the answer to a query that is read in the prompt's passages, and the number of the passage.

    A query that is a step of the model's own outline is read as that step.
    """
    mind, question, passages = asked.mind, asked.question, asked.passages
    index = next((n for n, step in enumerate(steps) if normalise(step.query) == normalise(query)), None)
    if question is None or index is None:
        return pick_surest([(mind.reads(query, passage.text), passage.number) for passage in passages])
    if not any(step.answer for step in question.steps):
        return asked.read_whole(passages)
    return pick_surest([(mind.takes(question, index, query, passage.text), passage.number) for passage in passages])


def _so_far(asked: Asked) -> tuple[list[Step], Solved]:
    """Return the steps of the outline with the answers that were given, and all that was asked with its answer."""
    solved: Solved = {}
    for step in asked.steps("solved"):
        solved[fill_in(step.query, _known(solved))] = step.answer
    answers = {normalise(query): answer for query, answer in solved.items()}
    return asked.gather([], memory=lambda query: answers.get(normalise(query))), solved


def _known(solved: Solved) -> list[str]:
    """Return the answers so far, and descriptions of what was not answered."""
    return [answer or describe(query) for query, answer in solved.items()]


def _solves_whole(asked: Asked, solved: Solved) -> bool:
    """Tell whether the whole question was asked, and answered."""
    return any(answer and normalise(query) == normalise(asked.words) for query, answer in solved.items())


def _show(solved: Solved) -> list[Shown]:
    """Return what was asked and answered as if it were passages."""
    return [Shown(place, f"{query} {answer or ''}") for place, (query, answer) in enumerate(solved.items(), start=1)]
