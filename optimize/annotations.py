"""A teacher that knows the annotations: it demonstrates every step of a program, and no LM is asked."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data import Question
from ..programs import Program
from ..programs.demonstrations import is_planner
from ..simulate import Mind, SimulatedEngine, Traits, World

NAME = "annotations"

# It knows half of the facts for certain, and the others without being certain. What it reads is what was annotated.
_READER = Traits(
    knows=0.5,
    invents=0,
    reads=1,
    misreads=0,
    plans=1,
    plans_shown=1,
    cites=1,
    cites_shown=1,
    whim=0,
    trusts=1,
    completes=1,
    misjudges=0,
    misjudges_shown=0,
    overlooks=0,
    overlooks_shown=0,
    asks=1,
    asks_shown=1,
    malformed=0,
)
# In plans it is sometimes certain of something wrong, so that passages have something to contradict.
_PLANNER = _READER.model_copy(update={"invents": 0.5})


def annotated_teacher(student: Program, examples: Sequence[dspy.Example]) -> Program:
    """Return a copy of the student that asks, in the place of an LM, the annotations of the examples.

    It knows the steps, answers and gold passages of these questions, and replies to each prompt by them. What it
    makes of a question is a demonstration only where the metric and the gold passages agree, and without those
    planned answers that turned out wrong (see `Verdicts`).

    Args:
        student: uncompiled.
        examples: made by `Question.to_example`.
    """
    world = World([Question.from_example(example) for example in examples])
    teacher: Program = student.reset_copy()
    for predictor in teacher.predictors():
        mind = Mind(world, _PLANNER if is_planner(predictor) else _READER)
        predictor.lm = dspy.LM(f"{NAME}/{mind.fingerprint}", engine=SimulatedEngine(mind), cache=False, num_retries=0)
    teacher._compiled = True  # or DSPy would give it rows of the task as demonstrations, and take its LM away
    return teacher


def is_free(lm: dspy.BaseLM) -> bool:
    """Return whether a call of this LM costs nothing, since annotations answer it."""
    return str(lm.model).startswith(f"{NAME}/")
