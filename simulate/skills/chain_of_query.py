"""Chains of query as the simulated model lays them out: from the question, and onwards from one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ...common.placeholders import fill_in, numbers_in
from ...metrics import normalise
from ..asked import Asked, Step, read_steps
from ..judge import stands_alone
from ..phrases import describe, write_out
from ..prompt import Values

Chain = list[dict[str, Any]]
Flaw = Literal["whole question", "step left out", "stops short"]


def plan_chain(asked: Asked) -> Values:
    """Return the whole chain, as well decomposed as the demonstrations in the prompt let the model do it.

    It is the question alone where the world lacks the question, or the model does not take it apart.
    """
    flaw = _find_flaw(asked)
    if asked.question is None or flaw == "whole question":
        return {"chain": [{"query": asked.words, "answer": asked.mind.believes(asked.words)}]}
    return {"chain": _lay_out(asked, flaw, answers=[])}


def correct_chain(asked: Asked) -> Values:
    """Return the passage's answer, unless the model trusts its own; and the rest of the chain."""
    query, traits = asked.prompt.given("query"), asked.mind.traits
    reference = asked.prompt.given("reference_answer").strip()
    trusts = traits.chance("trusts", normalise(query), normalise(reference)) < traits.trusts
    answer = reference if reference and trusts else asked.prompt.given("your_answer")
    return {"new_answer": answer, "chain": _go_on(asked, Step(query, answer))}


def complete_chain(asked: Asked) -> Values:
    """Return what was read in the passage, or else what the model knows; and the rest of the chain."""
    query = asked.prompt.given("query")
    answer = asked.prompt.given("reference_answer").strip() or asked.mind.believes(query)
    return {"new_answer": answer, "chain": _go_on(asked, Step(query, answer))}


def split_question(asked: Asked) -> Values:
    """Return the outline as a list, ``#n`` for the n-th answer, as well decomposed as a whole chain would be."""
    flaw = _find_flaw(asked)
    if asked.question is None or flaw == "whole question":
        return {"subquestions": [asked.words], "plan": [asked.words]}
    templates = asked.mind.outline(asked.question)
    left_out = _leave_out(asked, templates, flaw)
    queries, fillings = list[str](), list[str | None]()
    for index, template in enumerate(templates):
        query = fill_in(template, fillings)
        if index == left_out:
            fillings.append(describe(query))
        else:
            queries.append(query)
            fillings.append(f"#{len(queries)}")
    return {"subquestions": queries, "plan": queries}


def _go_on(asked: Asked, solved: Step) -> Chain:
    """Return the chain after a query that has just been answered, or has not."""
    if asked.question is None:
        return []
    answers = _align(asked.mind.outline(asked.question), [*asked.steps("solved"), solved])
    if not answers:  # it asked something else, such as the whole question: breaking that down is all that is left
        chain: Chain = [] if solved.answer else plan_chain(asked)["chain"]
        return chain if len(chain) > 1 else []
    return _lay_out(asked, _find_flaw(asked), answers)


def _lay_out(asked: Asked, flaw: Flaw | None, answers: Sequence[str | None]) -> Chain:
    """Return the outline's steps after those with answers, each asked with what the model believes of earlier ones."""
    assert asked.question is not None
    templates = asked.mind.outline(asked.question)
    left_out = _leave_out(asked, templates, flaw)
    believed = list(answers)
    chain: Chain = []
    for index in range(len(answers), len(templates)):
        if index == left_out:
            believed.append(None)
            continue
        query = write_out(templates, believed, index)
        believed.append(asked.mind.believes(query))
        chain.append({"query": query, "answer": believed[-1]})
    return chain


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


def _align(templates: Sequence[str], path: Sequence[Step]) -> list[str | None]:
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
    queries = [step.query for step in read_steps(demo.get("solved")) + read_steps(demo.get("chain"))]
    if "query" in demo:
        queries.append(str(demo["query"]))
    alone = {normalise(query) for query in queries if stands_alone(query)}
    for listed in (demo.get("subquestions"), demo.get("plan")):  # whose #1 is how a list of queries is written
        alone |= {normalise(str(query)) for query in listed or [] if stands_alone(fill_in(str(query), ["X"] * 9))}
    return len(alone - {normalise(str(demo.get("question", "")))}) >= 2
