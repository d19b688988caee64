"""Chains of query as the simulated model lays them out: from the question, and onwards from one query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from ...common.placeholders import fill_in, numbers_in
from ...metrics import contains, normalise
from ..asked import Asked, PathStep, pick_surest, read_steps
from ..phrases import Answers, describe, named_or_described, stands_alone, write_out
from ..prompt import Values
from ..world import is_among

_CHAINS = ("solved", "chain", "planned_chain", "answered_plan", "new_steps", "rest")
_LISTS = ("subquestions", "plan")
_DESCRIBED = re.compile(r"\(the answer to: (.+?)\)")  # what SearChain writes for an answer that is not known
_SURE_ENOUGH = 0.5  # the confidence from which the model says that a passage answers

Chain = list[dict[str, Any]]
LaidOut = tuple[str, str, str | None]
"""A step: its query with ``#n`` for earlier answers, the same with what the model believes of them, and its answer."""
Flaw = Literal["whole question", "step left out", "stops short"]


def plan_chain(asked: Asked) -> Values:
    """Return the whole chain, with what the model believes of each query."""
    return {"chain": _as_believed(_plan(asked))}


def plan_steps(asked: Asked) -> Values:
    """Plan the chain with ``#n`` for earlier answers, and tell what is recalled for each query, sure or not."""
    return {"planned_chain": _as_recalled(asked, _plan(asked))}


def plan_whole_chain(asked: Asked) -> Values:
    """Plan the chain and answer every query, sure or not."""
    chain = _as_believed(_plan(asked))
    return {"answered_plan": [step | {"answer": step["answer"] or asked.mind.recalls(step["query"])} for step in chain]}


def split_question(asked: Asked) -> Values:
    """Return the queries of a plan as a list."""
    queries = [query for query, *_ in _plan(asked)]
    return {"subquestions": queries, "plan": queries}


def revise_chain(asked: Asked) -> Values:
    """Plan on without what was not found: later queries describe it."""
    if asked.question is None:
        return {"rest": []}
    solved, templates = asked.steps("solved"), asked.mind.outline(asked.question)
    answers = _align(templates, [*solved, PathStep(asked.prompt.given("failed_query"))])
    rows: Iterable[LaidOut] = _laid_out(asked, templates, answers, before=len(solved)) if answers else ()
    return {"rest": _as_recalled(asked, rows)}


def check_step(asked: Asked) -> Values:
    """Return the verdict on a step: the reading that the model is surest of, compared with the proposed answer."""
    mind, proposed = asked.mind, asked.prompt.given("proposed_answer")
    query = _DESCRIBED.sub(lambda found: describe(found[1]), asked.prompt.given("query"))
    silent = {"passage_number": 0, "found": "", "verdict": "silent"}
    silent |= {"remembered": "" if proposed else mind.believes(query) or ""}
    readings = [(mind.reads(query, passage.text), passage) for passage in asked.passages]
    sure = [(read, one) for read, one in readings if read.confidence >= _SURE_ENOUGH]
    # a recorded model reads the same in every gold passage: only in one that holds it can it be copied
    found, number = pick_surest([(read, one.number) for read, one in sure if contains(one.text, read.span)])
    if found is None:
        return silent
    agrees = not proposed or contains(proposed, found) or contains(found, proposed)
    if not agrees and mind.traits.chance("trusts", normalise(query), normalise(found)) >= mind.traits.trusts:
        return silent
    stance = "supports" if agrees else "contradicts"
    items = asked.question.answers if asked.question and asked.question.style == "list" else ()
    where = [(item, one.number) for item in items for _, one in sure if contains(one.text, item)]
    others = {item: f"{item} [{place}]" for item, place in where if is_among(found, items) and item != found}
    told = "; ".join([found, *others.values()])
    return {"passage_number": number, "found": told, "verdict": stance, "remembered": ""}


def correct_chain(asked: Asked) -> Values:
    """Return the passage's answer, unless the model trusts its own; and the rest of the chain."""
    query, traits = asked.prompt.given("query"), asked.mind.traits
    reference = asked.prompt.given("reference_answer").strip()
    trusts = traits.chance("trusts", normalise(query), normalise(reference)) < traits.trusts
    answer = reference if reference and trusts else asked.prompt.given("your_answer")
    return {"new_answer": answer, "new_steps": _go_on(asked, PathStep(query, answer))}


def complete_chain(asked: Asked) -> Values:
    """Return what was read in the passage, or else what the model knows; and the rest of the chain."""
    query = asked.prompt.given("query")
    answer = asked.prompt.given("reference_answer").strip() or asked.mind.believes(query)
    return {"new_answer": answer, "new_steps": _go_on(asked, PathStep(query, answer))}


def _plan(asked: Asked) -> Iterator[LaidOut]:
    """Yield the steps of the chain, as well decomposed as the demonstrations in the prompt let the model do it.

    It is the question alone where the world lacks the question, or the model does not take it apart.
    """
    flaw, question = _find_flaw(asked), asked.question
    templates = [asked.words] if question is None or flaw == "whole question" else asked.mind.outline(question)
    return _laid_out(asked, templates, [], flaw=flaw)


def _go_on(asked: Asked, solved: PathStep) -> Chain:
    """Return the chain after a query that has just been answered, or has not."""
    if asked.question is None:
        return []
    templates = asked.mind.outline(asked.question)
    answers = _align(templates, [*asked.steps("solved"), solved])
    if not answers:  # it asked something else, such as the whole question: breaking that down is all that is left
        chain: Chain = [] if solved.answer else _as_believed(_plan(asked))
        return chain if len(chain) > 1 else []
    return _as_believed(_laid_out(asked, templates, answers, flaw=_find_flaw(asked)))


def _as_believed(rows: Iterable[LaidOut]) -> Chain:
    """Return steps as they are asked, each with what the model believes."""
    return [{"query": written, "answer": believed} for _, written, believed in rows]


def _as_recalled(asked: Asked, rows: Iterable[LaidOut]) -> Chain:
    """Return steps with ``#n`` in their queries, each with what is recalled for it, sure or not."""
    return [
        {"query": query, "recalled": believed or asked.mind.half_knows(written), "sure": believed is not None}
        for query, written, believed in rows
    ]


def _laid_out(
    asked: Asked, templates: Sequence[str], answers: Answers, *, before: int = 0, flaw: Flaw | None = None
) -> Iterator[LaidOut]:
    """Yield each step of an outline after those with answers, numbered on from ``before``."""
    left_out = _leave_out(asked, templates, flaw)
    believed, fillings = list(answers), named_or_described(templates, answers)
    for index in range(len(answers), len(templates)):
        query, written = fill_in(templates[index], fillings), write_out(templates, believed, index)
        if index == left_out:
            believed.append(None)
            fillings.append(describe(query))
            continue
        believed.append(asked.mind.believes(written))
        before += 1
        fillings.append(f"#{before}")
        yield query, written, believed[-1]


def _find_flaw(asked: Asked) -> Flaw | None:
    """Return what is wrong with the model's decomposition of the question, if anything is."""
    traits, prompt, key = asked.mind.traits, asked.prompt, normalise(asked.words)
    skill = traits.learnt(traits.plans, traits.plans_shown, sum(map(_shows_decomposing, prompt.demos)))
    whimsical = asked.salt or traits.chance("whim", prompt.text) < traits.whim
    draw = traits.chance("plans", prompt.text, asked.salt) if whimsical else traits.chance("plans", key)
    if draw < skill:
        return None
    flaws: list[Flaw] = ["whole question", "step left out", "stops short"]
    return traits.choice(flaws, "flaw", key)


def _leave_out(asked: Asked, templates: Sequence[str], flaw: Flaw | None) -> int | None:
    """Return the index of the step that a flawed decomposition lacks; a question of one step is never cut."""
    if flaw is None or len(templates) == 1:
        return None
    if flaw == "stops short":
        return len(templates) - 1
    needed = [number - 1 for template in templates for number in numbers_in(template) if number <= len(templates)]
    return asked.mind.traits.choice(needed or range(len(templates)), "left out", normalise(asked.words))


def _align(templates: Sequence[str], path: Sequence[PathStep]) -> list[str | None]:
    """Return the answer of each step of the outline up to the last one that the path asked; empty if it asked none.

    A step that the path passed over has no answer, and later queries describe it.
    """
    answers: list[str | None] = []
    for step in path:
        trial = list(answers)
        while len(trial) < len(templates):
            if normalise(write_out(templates, trial, len(trial))) == normalise(step.query):
                answers = [*trial, step.answer or None]
                break
            trial.append(None)
    return answers


def _shows_decomposing(demo: Values) -> bool:
    """Tell whether a demonstration shows how to decompose: by two or more queries that stand alone."""
    queries = [step.query for name in _CHAINS for step in read_steps(demo.get(name))]
    queries += [str(query) for name in _LISTS for query in demo.get(name) or []]
    if "query" in demo:
        queries.append(str(demo["query"]))
    # in a plan, #1 is how a query refers to an earlier answer
    alone = {normalise(query) for query in queries if stands_alone(fill_in(query, ["X"] * 9))}
    return len(alone - {normalise(str(demo.get("question", "")))}) >= 2
