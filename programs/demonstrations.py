"""Which steps of a trace are good demonstrations.

A trace is DSPy's: the calls of one question, in order. A program says of a step what kind it is
(`Program.kind_of`) and which passages it kept and which it turned away (`Program.judgements`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import dspy

from ..common.text import neutralise

if TYPE_CHECKING:
    from .program import Program

TraceStep = tuple[dspy.Predict, dict[str, Any], dspy.Prediction]
"""A predictor, what it was given, and what it replied."""

T = TypeVar("T")


class Judgement(NamedTuple):
    """What a step made of some passages, as it was shown them: one of them useful, or none."""

    passages: list[str]
    kept: bool


def select_demonstrations(program: Program, trace: Sequence[TraceStep], example: Any) -> list[TraceStep]:
    """The steps to demonstrate, the kinds of each predictor taking turns.

    The first steps of a predictor that is called many times are then of different kinds: of a paragraph review,
    one that accepts, one that searches on and one that rejects. Steps that contradict the example's gold passages
    are left out, also where the final answer was right.

    Args:
        program: whose trace it is.
        trace: the calls of one question.
        example: the question; ``gold_titles`` may be absent or empty, and nothing is then contradicted.
    """
    sound = [step for step in trace if not contradicts(program.judgements(step), example)]
    by_predictor = _grouped(sound, lambda step: id(step[0]))
    return [step for steps in by_predictor for step in balanced(steps, program.kind_of)]


def contradicts(judgements: Sequence[Judgement], example: Any) -> bool:
    """Whether a passage of the gold titles was turned away, or passages without one were kept."""
    gold = list(getattr(example, "gold_titles", None) or [])
    return bool(gold) and any(judged.kept != _any_gold(judged.passages, gold) for judged in judgements)


def balanced(items: Sequence[T], kind_of: Callable[[T], Hashable]) -> list[T]:
    """The items, their kinds taking turns; the kind that came first leads, and within a kind the order stays."""
    turns = zip_longest(*([(item,) for item in group] for group in _grouped(items, kind_of)))
    return [entry[0] for turn in turns for entry in turn if entry is not None]


def _grouped(items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _any_gold(passages: list[str], gold: list[str]) -> bool:
    """Whether a passage is of a gold title; in a prompt it stands as ``title | text``, numbered or not."""
    starts = tuple(f"{neutralise(title)} | ".casefold() for title in gold)
    return any(_without_number(passage).casefold().startswith(starts) for passage in passages)


def _without_number(shown: str) -> str:
    number, bracket, rest = shown.partition("] ")
    return rest if bracket and number.startswith("[") and number[1:].isdigit() else shown
