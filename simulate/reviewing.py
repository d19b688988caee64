"""Paragraphs as the simulated model reviews them, and what it writes from memory where they lack something."""

from __future__ import annotations

from .gathering import gather, missing_query, question_of, shown_passages
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .tracing import UNKNOWN, conclude, told


def review_paragraphs(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """Relevant if one passage is taken for useful; supported if every step is read in them, or is taken to be."""
    words, style, _ = question_of(mind, prompt)
    judge, passages = Judge.of(mind, prompt, salt), shown_passages(prompt.values.get("passages"))
    read = judge.reads(words, passages)
    steps = gather(mind, words, read)
    query = missing_query(mind, words, steps, passages) if judge.asks_well(words, passages) else words
    thoughts = told(mind, prompt, salt, [{**step, "reference": None} for step in steps])
    lacking = any(not step["answer"] for step in steps)
    answer = UNKNOWN
    if read and not lacking:
        answer = conclude(mind, words, style, steps)
    elif read and judge.takes_for_enough(words, passages):
        answer = conclude(mind, words, style, gather(mind, words, read, mind.believes))
    supported = answer != UNKNOWN  # a model that has no answer to give does not accept
    return {
        "thoughts": thoughts if read else "None of the passages is about what the question needs.",
        "relevant": bool(read),
        "supported": supported,
        "answer": answer if supported else None,
        "next_query": None if supported else query,
    }


def complete_paragraphs(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The first fact that the passages lack, from memory: right, invented, or only named."""
    words, _, _ = question_of(mind, prompt)
    judge, passages = Judge.of(mind, prompt, salt), shown_passages(prompt.values.get("passages"))
    steps = gather(mind, words, judge.reads(words, passages))
    query = missing_query(mind, words, steps, passages) if judge.asks_well(words, passages) else words
    return {"thoughts": f"It is not said: {query}", "information": written(query, mind.recalls(query))}


def written(query: str, answer: str | None) -> str:
    """A fact as a sentence; without an answer, what it is about."""
    return f"{query.rstrip('?')}: {answer.rstrip('.')}." if answer else f"{query.rstrip('?')}."
