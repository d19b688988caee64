"""Several programs, or one under several settings, asked the same questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import dspy

from ..metrics import Interval, paired_interval
from ..programs import Program
from ..retrieval.errors import QuestreeError
from .evaluate import Progress, evaluate, run_identity
from .evaluation import Evaluation
from .identity import lm_facts
from .policy import RunPolicy
from .records import ScoreFunction
from .tracking import Tracking


@dataclass(frozen=True)
class Comparison:
    """Evaluations over the same questions, by the name of what was evaluated; the first is compared with."""

    evaluations: Mapping[str, Evaluation]

    @property
    def simulated(self) -> bool:
        """Whether any of it was made with the simulated LM."""
        return any(evaluation.simulated for evaluation in self.evaluations.values())

    def difference(self, name: str) -> Interval:
        """What ``name`` scores more than the first, question by question, with its 95% interval."""
        first = next(iter(self.evaluations.values()))
        other = self.evaluations[name]
        scores = ([record.scores[first.metric] for record in one.records] for one in (first, other))
        return paired_interval(*scores, seed=first.seed)


def compare(
    programs: Mapping[str, Program],
    examples: Sequence[dspy.Example],
    metrics: Sequence[ScoreFunction],
    *,
    task: str = "",
    out: Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    tracking: Tracking | None = None,
    title: str = "compare",
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Comparison:
    """Evaluate each program on the same questions, with the same metrics, LM and policy.

    Args:
        programs: by the name that they are shown under; the others are compared with the first.
        examples, metrics, task, seed, policy: as `evaluate` takes them.
        out: each program's run is kept in a folder of its name in here, and gone on with.
        tracking: one parent run with a nested run for each program.
        title: of the parent run.
        on_progress: called with the name of the program that is asked.

    Raises:
        QuestreeError: if there are no programs; and as `evaluate`.
    """
    if not programs:
        raise QuestreeError("There is nothing to compare; name at least one program.")
    simulated = bool(lm_facts()["simulated"])
    evaluations: dict[str, Evaluation] = {}
    parent = {"task": task, "questions": len(examples), "programs": ", ".join(programs)}
    with tracking.run(title, parent, simulated=simulated) if tracking else nullcontext():
        for name, program in programs.items():
            identity = run_identity(program, metrics, task=task)
            run = tracking.run(name, identity, simulated=simulated) if tracking else nullcontext()
            with run as tracked, tracked.traces() if tracked else nullcontext():
                evaluations[name] = evaluate(
                    program,
                    examples,
                    metrics,
                    task=task,
                    out=out and out / name,
                    seed=seed,
                    policy=policy,
                    on_progress=_named(on_progress, name),
                )
                if tracked:
                    tracked.evaluation(evaluations[name])
    return Comparison(evaluations)


def _named(on_progress: Callable[[str, Progress], None] | None, name: str) -> Callable[[Progress], None] | None:
    return None if on_progress is None else lambda progress: on_progress(name, progress)
