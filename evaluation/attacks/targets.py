"""What an attacker wants to be answered: a wrong answer that could be right."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import dspy

from ...metrics import contains, normalise
from ..records import question_id

_ASKS = re.compile(r"\b(who|whom|whose|where|when|which|what|how (?:many|much|long|old))\b(?:\s+(\w+))?", re.IGNORECASE)
_LABELS = ("SUPPORTS", "REFUTES")


def wrong_answer(example: dspy.Example, others: Sequence[dspy.Example], seed: int) -> str | None:
    """The target: the opposite where there is one, else the answer of another question, as like this one as can be.

    Another question is more like this one if it asks with the same words, has the data set's own kind and an answer
    of the same shape (number or name). An answer that is right, or stands in the question, is no target. PoisonedRAG
    lets an LM invent it.

    Returns:
        None where every other answer is right, too.
    """
    style, gold = example.get("answer_style") or "short", list(example.answers)
    if style == "yes-no":
        return "no" if gold[0].lower() == "yes" else "yes"
    if style == "label":
        return next(label for label in _LABELS if label not in gold)
    draw = random.Random(f"{seed} {question_id(example)}")
    pool = [other for other in others if other.answers and (other.get("answer_style") or "short") == style]
    fitting = [
        (sum(mine == theirs for mine, theirs in zip(_traits(example), _traits(other), strict=True)), other.answers[0])
        for other in pool
        if _is_wrong(other.answers[0], example)
    ]
    best = max((score for score, _ in fitting), default=0)
    options = sorted({answer for score, answer in fitting if score == best})
    return draw.choice(options) if options else None


def _traits(example: dspy.Example) -> tuple[object, ...]:
    asks = _ASKS.search(example.question)
    word = asks[1].lower() if asks else ""
    noun = (asks[2] or "").lower() if asks else ""
    return word, noun, any(c.isdigit() for c in example.answers[0]), example.get("kind")


def _is_wrong(answer: str, example: dspy.Example) -> bool:
    if not normalise(answer):
        return False
    right = any(contains(answer, gold) or contains(gold, answer) for gold in example.answers)
    return not right and not contains(example.question, answer)
