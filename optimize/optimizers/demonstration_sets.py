"""Bootstrapped demonstrations, as DSPy makes them, and the sets of them that its searches compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random

import dspy

from ...programs import Program


class Bootstrap(dspy.BootstrapFewShot):
    """`dspy.BootstrapFewShot` that prints nothing; the teacher's instructions may differ from the student's."""

    def _prepare_predictor_mappings(self) -> None:
        """Note the names of both programs' predictors; that their fields are the same was checked before.

        DSPy refuses a teacher with other instructions, as a compiled one may have.
        """
        named = [*self.student.named_predictors(), *self.teacher.named_predictors()]
        self.predictor2name = {id(predictor): name for name, predictor in named}
        self.name2predictor = dict.fromkeys(self.predictor2name.values())

    def _bootstrap(self, *, max_bootstraps: int | None = None) -> None:
        """Ask the questions in turn until enough of them were answered well. DSPy prints, and shows a bar."""
        wanted, found = max_bootstraps or self.max_bootstrapped_demos, set[int]()
        self.name2traces: dict[str, list[dspy.Example]] = {name: [] for name in self.name2predictor}
        for number, example in enumerate(self.trainset):
            if len(found) >= wanted:
                break
            if any(self._bootstrap_one_example(example, attempt) for attempt in range(self.max_rounds)):
                found.add(number)
        self.validation = [example for number, example in enumerate(self.trainset) if number not in found]
        Random(0).shuffle(self.validation)


def demonstration_sets(
    student: Program,
    trainset: Sequence[dspy.Example],
    bootstrap: Callable[[list[dspy.Example], int], Program],
    draw: Callable[[int, list[dspy.Example]], int],
    *,
    bootstrapped: int,
    labeled: int | None,
) -> Iterator[Program]:
    """Yield, without end, copies of a student with other demonstrations, as DSPy's searches compare them.

    First none; then questions as they are; then bootstrapped ones, of the questions in order and of each shuffling.

    Args:
        bootstrap: makes a program of questions and a number of demonstrations.
        draw: shuffles the questions in place, for the n-th time, and returns a number of demonstrations.
        bootstrapped: the largest such number.
        labeled: questions to show as they are; None for one more shuffling in their place.
    """
    numbers = count()

    def shuffled() -> Program:
        questions = [*trainset]
        size = draw(next(numbers), questions)
        return bootstrap(questions, size)

    yield student.reset_copy()
    if labeled is None:
        yield shuffled()
    else:
        yield dspy.LabeledFewShot(k=labeled).compile(student, trainset=[*trainset])
    yield bootstrap([*trainset], bootstrapped)
    while True:
        yield shuffled()
