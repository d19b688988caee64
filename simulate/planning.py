"""Chains of query as the simulated model lays them out: from the question, and onwards from one query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from ..common.placeholders import fill_in, numbers_in
from ..data import Question
from ..metrics import normalise
from .describing import described, written_out
from .mind import Mind
from .prompt import Prompt, Values

Chain = list[dict[str, Any]]
Flaw = Literal["whole question", "step left out", "stops short"]

_LEANS_ON = re.compile(
    r"[#<]\d|\b(it|he|she|they|his|her|its|their|this|these|those|that (person|man|woman|place|city|country))\b",
    re.IGNORECASE,
)


def plan_chain(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The whole chain, as well decomposed as the demonstrations in the prompt let the model do it."""
    words = str(prompt.values.get("question", ""))
    return {"chain": _chain(mind, prompt, salt, words)}


def correct_chain(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The passage's answer, unless the model trusts its own; and the rest of the chain."""
    query, own = str(prompt.values.get("query", "")), prompt.values.get("your_answer")
    reference = str(prompt.values.get("reference_answer") or "").strip()
    trusts = mind.traits.chance("trusts", normalise(query), normalise(reference)) < mind.traits.trusts
    answer = reference if reference and trusts else str(own or "")
    return {"new_answer": answer, "chain": _rest(mind, prompt, salt, query, answer)}


def complete_chain(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What was read in the passage; without that, what the model knows; and the rest of the chain."""
    query = str(prompt.values.get("query", ""))
    answer = str(prompt.values.get("reference_answer") or "").strip() or mind.believes(query)
    return {"new_answer": answer, "chain": _rest(mind, prompt, salt, query, answer)}


def split_question(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The outline as a list, ``#n`` for the n-th answer, as well decomposed as a whole chain would be."""
    words = str(prompt.values.get("question", ""))
    queries = _listed(mind, prompt, salt, words)
    return {"subquestions": queries, "plan": queries}


def good_demos(prompt: Prompt) -> int:
    """Demonstrations in the prompt that show how to decompose: whole ones of two or more queries that stand alone."""
    return sum(_shows_decomposing(demo) for demo in prompt.demos)


def stands_alone(query: str) -> bool:
    """Whether the query is complete in itself, as far as its words tell."""
    return len(query.split()) > 2 and not _LEANS_ON.search(query)


def _shows_decomposing(demo: Values) -> bool:
    queries = [str(step.get("query", "")) for step in steps_of(demo.get("solved")) + steps_of(demo.get("chain"))]
    if "query" in demo:
        queries.append(str(demo["query"]))
    alone = {normalise(query) for query in queries if stands_alone(query)}
    for listed in (demo.get("subquestions"), demo.get("plan")):  # whose #1 is how a list of queries is written
        alone |= {normalise(str(query)) for query in listed or [] if stands_alone(fill_in(str(query), ["X"] * 9))}
    return len(alone - {normalise(str(demo.get("question", "")))}) >= 2


def _chain(mind: Mind, prompt: Prompt, salt: str, words: str) -> Chain:
    question = mind.world.question(words)
    if question is None:
        return [{"query": words, "answer": mind.believes(words)}]
    flaw = flaw_in(mind, prompt, salt, question)
    if flaw == "whole question":
        return [{"query": words, "answer": mind.believes(words)}]
    return _from(mind, question, flaw, answers=[], begin=0)


def _listed(mind: Mind, prompt: Prompt, salt: str, words: str) -> list[str]:
    question = mind.world.question(words)
    flaw = flaw_in(mind, prompt, salt, question) if question else None
    if question is None or flaw == "whole question":
        return [words]
    templates = mind.outline(question)
    left_out = left_out_of(mind, question, templates, flaw)
    queries, fillings = list[str](), list[str | None]()
    for index, template in enumerate(templates):
        query = fill_in(template, fillings)
        if index == left_out:
            fillings.append(described(query))
        else:
            queries.append(query)
            fillings.append(f"#{len(queries)}")
    return queries


def _rest(mind: Mind, prompt: Prompt, salt: str, query: str, answer: str | None) -> Chain:
    """The chain after a query that has just been answered, or has not."""
    words = str(prompt.values.get("question", ""))
    question = mind.world.question(words)
    if question is None:
        return []
    path = [(str(step.get("query", "")), step.get("answer")) for step in steps_of(prompt.values.get("solved"))]
    answers = _aligned(mind.outline(question), [*path, (query, answer)])
    if not answers:  # it asked something else, such as the whole question: breaking that down is all that is left
        chain = [] if answer else _chain(mind, prompt, salt, words)
        return chain if len(chain) > 1 else []
    return _from(mind, question, flaw_in(mind, prompt, salt, question), answers, begin=len(answers))


def flaw_in(mind: Mind, prompt: Prompt, salt: str, question: Question) -> Flaw | None:
    """What is wrong with the model's decomposition of this question, if anything."""
    traits = mind.traits
    key = normalise(question.question)
    skill = traits.learnt(traits.plans, traits.plans_shown, good_demos(prompt))
    whimsical = salt or traits.chance("whim", prompt.text) < traits.whim
    draw = traits.chance("plans", prompt.text, salt) if whimsical else traits.chance("plans", key)
    if draw < skill:
        return None
    flaws: list[Flaw] = ["whole question", "step left out", "stops short"]
    return traits.choice(flaws, "flaw", key)


def _from(mind: Mind, question: Question, flaw: Flaw | None, answers: Sequence[str | None], begin: int) -> Chain:
    """Steps of the outline from ``begin`` on, each asked with what the model believes of the earlier ones."""
    templates = mind.outline(question)
    left_out = left_out_of(mind, question, templates, flaw)
    believed = list(answers)
    chain: Chain = []
    for index in range(begin, len(templates)):
        if index == left_out:
            believed.append(None)
            continue
        query = written_out(templates, believed, index)
        believed.append(mind.believes(query))
        chain.append({"query": query, "answer": believed[-1]})
    return chain


def left_out_of(mind: Mind, question: Question, templates: Sequence[str], flaw: Flaw | None) -> int | None:
    """The index of the step that a flawed decomposition lacks; a question of one step is never cut."""
    if flaw is None or len(templates) == 1:
        return None
    if flaw == "stops short":
        return len(templates) - 1
    needed = [number - 1 for template in templates for number in numbers_in(template) if number <= len(templates)]
    return mind.traits.choice(needed or range(len(templates)), "left out", normalise(question.question))


def _aligned(templates: Sequence[str], path: Sequence[tuple[str, Any]]) -> list[str | None]:
    """The answer of each step of the outline up to the last one that the path asked; empty if it asked none.

    A step that the path passed over has no answer, and later queries describe it.
    """
    answers: list[str | None] = []
    for query, answer in path:
        trial = list(answers)
        while len(trial) < len(templates):
            if normalise(written_out(templates, trial, len(trial))) == normalise(query):
                answers = [*trial, str(answer) if answer else None]
                break
            trial.append(None)
    return answers


def steps_of(value: Any) -> list[dict[str, Any]]:
    """The steps of an input field that is a chain."""
    return [step for step in value if isinstance(step, dict)] if isinstance(value, list) else []
