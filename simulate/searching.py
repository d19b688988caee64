"""Reasoning that searches on its way, as the simulated model goes about it: by sentence, by query, in a text."""

from __future__ import annotations

import re
from typing import Any

from .answering import remembering, texts_of
from .describing import described
from .gathering import Shown, gather, question_of, shown_passages
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .seeking import lacking_queries, next_query
from .stating import mentions, stated, statement
from .tracing import cites, conclude, told

_SEARCH = re.compile(r"^\[Search\((.*?)\) → (.*)\]$", re.DOTALL)
_RESULT = re.compile(r"\[(\d+)\] (.*?)(?=; \[\d+\] |$)", re.DOTALL)


def write_next_thought(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The next fact as it is read, or else remembered; one that is neither stays open, and searches all the same."""
    words, style, _ = question_of(mind, prompt)
    mind, judge = mind.sampled(salt), Judge.of(mind, prompt, salt)
    passages, thoughts = shown_passages(prompt.values.get("passages")), texts_of(prompt.values.get("thoughts"))
    steps = gather(mind, words, passages, memory=remembering(mind, thoughts))
    ahead = [step for step in steps if not mentions(step["query"], thoughts)]
    if not ahead or (thoughts and _lacks(steps) and judge.takes_for_enough(words, passages)):
        return {"thought": f"So the answer is: {conclude(mind, words, style, steps)}."}
    if not ahead[0]["answer"] and not judge.asks_well(words, passages) and not mentions(words, thoughts):
        return {"thought": statement(words, None)}
    return {"thought": _fact(mind, prompt, salt, ahead[0])}


def write_search_query(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The query for the first fact that the passages lack, in a sample sometimes in other words."""
    words, _, _ = question_of(mind, prompt)
    mind, judge = mind.sampled(salt), Judge.of(mind, prompt, salt)
    passages = shown_passages(prompt.values.get("passages"))
    steps = gather(mind, words, passages)
    lacking = lacking_queries(judge, words, steps, passages, before=[])
    query = lacking[0] if lacking and judge.asks_well(words, passages) else words
    if salt:
        query = mind.traits.choice([query, query, described(query)], "in other words", prompt.text, salt)
    return {"thoughts": told(mind, prompt, salt, [step | {"reference": None} for step in steps]), "query": query}


def write_or_search(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The facts up to the first that the model does not remember and has not looked up: it calls for that one.

    What it remembers wrong, it so never looks up.
    """
    words, style, _ = question_of(mind, prompt)
    mind, judge = mind.sampled(salt), Judge.of(mind, prompt, salt)
    texts, searches, results = _written(prompt)
    steps = gather(mind, words, results, memory=remembering(mind, texts))
    search = next_query(judge, words, steps, results, searches)
    known = next((place for place, step in enumerate(steps) if not step["answer"]), len(steps)) if search else None
    facts = [_fact(mind, prompt, salt, step) for step in steps[:known] if not stated(step["query"], texts)]
    if search:
        return {"continuation": " ".join([*facts, f"To be looked up: {search}"]), "search": search, "answer": None}
    answer = conclude(mind, words, style, steps)
    return {"continuation": " ".join([*facts, f"So the answer is: {answer}."]), "search": None, "answer": answer}


def _fact(mind: Mind, prompt: Prompt, salt: str, step: dict[str, Any]) -> str:
    reference = step["reference"] if step["reference"] and cites(mind, prompt, salt, step["query"]) else None
    return statement(step["query"], step["answer"], reference)


def _lacks(steps: list[dict[str, Any]]) -> bool:
    return any(not step["answer"] for step in steps)


def _written(prompt: Prompt) -> tuple[list[str], list[str], list[Shown]]:
    """The text so far, what was searched for in it, and the passages that were found."""
    texts, searches, results = list[str](), list[str](), list[Shown]()
    for row in texts_of(prompt.values.get("written")):
        found = _SEARCH.match(row)
        if found is None:
            texts.append(row)
            continue
        searches.append(found[1])
        results += [Shown(int(number), text) for number, text in _RESULT.findall(found[2])]
    return texts, searches, results
