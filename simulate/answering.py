"""Answers to a question as the simulated model gives them: outright, after some thought, or from texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .gathering import gather, question_of, shown_passages
from .holding import split_title
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .stating import stated
from .tracing import conclude, told


def answer_question(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The answer to a question asked outright: right if the model knows every fact that it is put together from."""
    mind = mind.sampled(salt)
    words, style, _ = question_of(mind, prompt)
    believed = mind.believes(words)
    if style == "short" and believed:
        return {"answer": believed}
    return {"answer": conclude(mind, words, style, [{"query": words, "answer": believed}] if believed else [])}


def answer_step_by_step(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """Fact after fact from memory, sure or not: written out, more of them come back than in an answer outright."""
    words, style, _ = question_of(mind, prompt)
    mind = mind.sampled(salt)
    steps = gather(mind, words, passages=[], memory=mind.recalls)
    return {"final_content": told(mind, prompt, salt, steps), "answer": conclude(mind, words, style, steps)}


def answer_from_passages(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The answer without a word of reasoning: useful passages are overlooked, and memory takes their place.

    A passage without a title is one that the model wrote, and what it states there is taken as it stands.
    """
    words, style, _ = question_of(mind, prompt)
    mind = mind.sampled(salt)
    passages = shown_passages(prompt.values.get("passages"))
    written = [passage.text for passage in passages if not split_title(passage.text)[0]]
    read = Judge.of(mind, prompt, salt).reads(words, passages)
    steps = gather(mind, words, read, memory=remembering(mind, written))
    return {"answer": conclude(mind, words, style, steps)}


def answer_from_thoughts(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What the thoughts state, results of searches among them; memory where they are silent."""
    words, style, _ = question_of(mind, prompt)
    mind = mind.sampled(salt)
    texts = texts_of(prompt.values.get("thoughts"))
    return {"answer": conclude(mind, words, style, gather(mind, words, [], memory=remembering(mind, texts)))}


def remembering(mind: Mind, texts: Sequence[str]) -> Callable[[str], str | None]:
    """What was written before in the prompt, and else what the model believes."""
    return lambda query: stated(query, texts) or mind.believes(query)


def texts_of(value: Any) -> list[str]:
    """The texts of an input field that is a list."""
    return [str(row) for row in value] if isinstance(value, list) else []
