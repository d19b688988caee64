"""The final answer as the simulated model gives it from passages, and from what accepted paths assert."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..metrics import normalise
from .gathering import gather, question_of, shown_passages
from .mind import Mind
from .prompt import Prompt, Values
from .tracing import cites, conclude, told


def answer_with_knowledge(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """Step by step: what the passages tell, what the model remembers where they are silent, and what follows."""
    words, style, _ = question_of(mind, prompt)
    mind = mind.sampled(salt)
    steps = gather(mind, words, shown_passages(prompt.values.get("passages")), memory=mind.believes)
    return _content(words, told(mind, prompt, salt, steps)) | {"answer": conclude(mind, words, style, steps)}


def fuse_assertions(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What the passages together bear out, if they tell every step; else what most assertions say.

    Of answers that are asserted equally often, the model gives the one that it remembers, or else draws. Where
    nothing is asserted, it answers as with any knowledge.
    """
    words, style, _ = question_of(mind, prompt)
    assertions = [row for row in prompt.values.get("assertions") or [] if isinstance(row, dict) and row.get("answer")]
    if not assertions:
        return answer_with_knowledge(mind, prompt, salt)
    steps = gather(mind, words, shown_passages(prompt.values.get("passages")))
    if all(step["answer"] for step in steps):
        return _content(words, told(mind, prompt, salt, steps)) | {"answer": conclude(mind, words, style, steps)}
    answer = _weighed(mind, words, [str(row["answer"]) for row in assertions])
    return _content(words, _told_by(mind, prompt, salt, words, answer, assertions)) | {"answer": answer}


def _content(words: str, content: str) -> Values:
    return {"final_content": content or f"Nothing is known about “{words}”."}


def _weighed(mind: Mind, words: str, answers: list[str]) -> str:
    votes = Counter(normalise(answer) for answer in answers)
    most = [answer for answer in answers if votes[normalise(answer)] == max(votes.values())]
    distinct = list({normalise(answer): answer for answer in reversed(most)}.values())
    memory = normalise(mind.believes(words) or "")
    remembered = [answer for answer in distinct if normalise(answer) == memory]
    return remembered[0] if remembered else mind.traits.choice(sorted(distinct), "weighed", normalise(words))


def _told_by(mind: Mind, prompt: Prompt, salt: str, words: str, answer: str, assertions: list[dict[str, Any]]) -> str:
    """One sentence for each different assertion, the chosen one first, with the marks that are not forgotten."""
    sentences: dict[str, str] = {}
    for row in sorted(assertions, key=lambda row: normalise(str(row["answer"])) != normalise(answer)):
        given = str(row["answer"])
        references = row.get("references") if cites(mind, prompt, salt, f"{words} {given}") else []
        marks = "".join(f" [{number}]" for number in references or [])
        beginning = words.rstrip("?") if normalise(given) == normalise(answer) else "Against that stands"
        sentences.setdefault(normalise(given), f"{beginning}: {given.rstrip('.')}{marks}.")
    return " ".join(sentences.values())
