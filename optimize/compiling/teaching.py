"""Which calls of a well-answered question become demonstrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...programs import Program, select_demonstrations
from ...programs.demonstrations import TraceStep


class Teaching:
    """Leaves one call of each predictor in a trace: of the kind that has been shown least so far.

    DSPy takes one call of each predictor and question, at random; of a predictor that is called many times in one
    question, as paragraph review is, it may so show three rejections and nothing else. Calls that contradict the gold
    passages are left out, also where the answer was right.

    Args:
        program: the one that is compiled; knows the kinds of its calls and which passages they judged.
    """

    def __init__(self, program: Program):
        self.program = program
        self._shown: Counter[tuple[Any, ...]] = Counter()

    def leave_the_best(self, trace: list[TraceStep], example: Any) -> None:
        """Change the trace in place, before DSPy takes its demonstrations from it."""
        sound: dict[str, list[TraceStep]] = {}
        for step in select_demonstrations(self.program, trace, example):
            sound.setdefault(step[0].stage, []).append(step)  # a predictor's name for itself, the same in all copies
        trace[:] = [self._least_shown(predictor, steps) for predictor, steps in sound.items()]

    def _least_shown(self, predictor: str, steps: Sequence[TraceStep]) -> TraceStep:
        chosen = min(steps, key=lambda step: self._shown[predictor, self.program.kind_of(step)])
        self._shown[predictor, self.program.kind_of(chosen)] += 1
        return chosen
