"""Sentences of a reasoning as the simulated model asks about them, and edits them by passages."""

from __future__ import annotations

from ..metrics import contains, normalise
from .gathering import Shown, question_of, shown_passages
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .stating import asked_in, stated, statement
from .subquestions import best_reading


def ask_to_verify(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What the sentence answers, asked again; where the model asks badly, the whole question."""
    words, _, _ = question_of(mind, prompt)
    sentence = str(prompt.values.get("sentence", ""))
    asks_well = Judge.of(mind, prompt, salt).asks_well(words, [Shown(1, sentence)])
    return {"query": asked_in(sentence) if asks_well else words}


def edit_sentence(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What is read for the query, if the model does not trust its own more; without that, the sentence as it was."""
    query, sentence = str(prompt.values.get("query", "")), str(prompt.values.get("sentence", ""))
    passages = shown_passages(prompt.values.get("passages"))
    answer, reference = best_reading(mind.sampled(salt), query, passages)
    before = stated(query, [sentence])
    if answer is None or reference is None:
        return {"edited": sentence, "references": []}
    if before and contains(before, answer):
        return {"edited": sentence, "references": [reference]}
    trusts = mind.traits.chance("trusts", normalise(query), normalise(answer)) < mind.traits.trusts
    if before and not trusts:
        return {"edited": sentence, "references": []}
    return {"edited": statement(query, answer), "references": [reference]}
