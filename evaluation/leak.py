"""Leakage: a program or a reader must not be scored on questions that it was made with."""

from __future__ import annotations

from collections.abc import Iterable

import dspy

from ..common.errors import QuestreeError
from ..data.task import bare_words
from ..programs import Program
from ..programs.composed import NearestDemonstrations


def refuse_leak(training: Iterable[str], scored: Iterable[str], uses: str = "training and for scoring") -> None:
    """Raise a `QuestreeError` if a question is for training and for scoring; it says which.

    Args:
        training: the words, or the ids, of the questions that something is or was made with.
    """
    known = {*map(bare_words, training)}
    if shared := {question for question in scored if bare_words(question) in known}:
        raise QuestreeError(
            f"{len(shared)} questions are for {uses}, {min(shared)!r} for one. "
            "A score needs unseen ones: choose different splits, or leave them out of one."
        )


def refuse_demonstrated(programs: Iterable[Program], examples: Iterable[dspy.Example]) -> None:
    """Raise a `QuestreeError` if a program is to be scored on a question that stands among its demonstrations."""
    scored = [str(example.get("question")) for example in examples]
    for program in programs:
        shown = {str(demo["question"]) for one in program.predictors() for demo in one.demos if "question" in demo}
        if isinstance(program, NearestDemonstrations):
            shown |= {lesson.inputs["question"] for lesson in program.lessons}
        refuse_leak(shown, scored)
