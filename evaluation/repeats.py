"""Repeated runs of one program: how much of the spread of scores is chance, and how much lies in the questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import dspy

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..lm.limits import RunPolicy
from ..lm.models import is_served
from ..metrics import Interval, mean_interval
from ..programs import Program
from ..programs.program import checked_program
from .evaluation import Evaluation
from .identity import lms_of
from .kept_run import begin
from .record_scores import ScoreFunction, checked_metrics
from .run import Progress
from .series import evaluate_tracked, named_progress, running_series
from .tracking import OFF, Tracking

_GREEDY = {True: (0,), False: (0, None)}  # a server that is sent no temperature uses its own
_APART = 1000  # rollouts of a repeat; the samples that a program draws itself are numbered under them


@dataclass(frozen=True)
class Repeats:
    """Runs of the same program over the same questions, each with its own replies.

    Attributes:
        runs: two or more.
    """

    runs: tuple[Evaluation, ...]

    @property
    def score(self) -> Interval:
        """Return the mean over questions of their mean score, with its interval: a question counts once."""
        return mean_interval([fmean(scores) for scores in self._by_question], seed=self.runs[0].seed)

    @property
    def within(self) -> float:
        """Return the variance of a question's score from run to run, a mean over the questions: the share of chance."""
        return fmean(variance(scores) for scores in self._by_question)

    @property
    def between(self) -> float:
        """Return the variance between the questions' mean scores, less the part of chance; 0 for one question."""
        means = [fmean(scores) for scores in self._by_question]
        return max(0.0, variance(means) - self.within / len(self.runs)) if len(means) > 1 else 0.0

    def as_json(self) -> str:
        """Return the score of the runs together, both variances, and every figure of each run."""
        first = self.runs[0]
        content = {"metric": first.metric, "simulated": first.simulated, "score": asdict(self.score)}
        content |= {"within": self.within, "between": self.between}
        content["runs"] = [json.loads(run.as_json()) for run in self.runs]
        return json.dumps(content, ensure_ascii=False, indent=2)

    @property
    def _by_question(self) -> list[tuple[float, ...]]:
        """Return the scores of each question, one from each run."""
        metric = self.runs[0].metric
        return list(zip(*([one.scores[metric] for one in run.records] for run in self.runs), strict=True))


def repeat(
    program: Program,
    examples: Sequence[dspy.Example],
    metrics: ScoreFunction | Sequence[ScoreFunction],
    count: int,
    *,
    task: str = "",
    out: str | Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    tracking: Tracking = OFF,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Repeats:
    """Evaluate a program several times with an LM that samples.

    Args:
        program, examples, metrics, task, seed: see `evaluate`.
        count: how many times, two or more.
        out: a folder; the runs ``repeat-1`` … are in its ``runs.db``, which the same call resumes, and what they add
            up to is in its ``repeats.json``.
        policy: see `evaluate`; a budget in it is for all runs together.
        tracking: makes a parent run, and a nested run for each repeat.
        on_progress: called with the name of the run, and how far it is.

    Raises:
        QuestreeError: if the count is below two, or the LM decodes greedily; also what `evaluate` raises.
    """
    lm, program = dspy.settings.lm, checked_program(program)
    if count < 2:
        raise QuestreeError(f"{count} repeats: give two or more.")
    if any(one is None or one.kwargs.get("temperature") in _GREEDY[is_served(one)] for one in lms_of(program)):
        raise QuestreeError("An LM that decodes greedily repeats itself; give --temperature, for example 0.7.")
    metrics, place = checked_metrics(metrics, examples), None if out is None else Path(out)
    how: dict[str, Any] = {"task": task, "seed": seed, "policy": policy, "tracking": tracking}
    about, runs = {"task": task, "questions": len(examples), "programs": program.name}, list[Evaluation]()
    title = f"repeat {program.name}"
    with running_series(title, place, "repeats", [program], about, policy, tracking) as (file, tracked):
        for name, rollout in ((f"repeat-{number}", number * _APART) for number in range(1, count + 1)):
            told = named_progress(on_progress, name)
            with dspy.context(lm=lm and lm.copy(rollout_id=rollout)):
                asked = _apart(program, rollout)
                kept = None if file is None else begin(file, name, asked, task, policy)
                runs.append(evaluate_tracked(name, asked, examples, metrics, out=kept, on_progress=told, **how))
        tracked.figures({"score": fmean(run.score.mean for run in runs)})
    repeats = Repeats(tuple(runs))
    if place:
        write_atomically(place / "repeats.json", repeats.as_json())
    return repeats


def _apart(program: Program, rollout: int) -> Program:
    """Return the program with predictors' own LMs set to this rollout, or the cache would give the same replies."""
    if not any(predictor.lm for predictor in program.predictors()):
        return program
    apart = program.deepcopy()
    for predictor in apart.predictors():
        predictor.lm = predictor.lm and predictor.lm.copy(rollout_id=rollout)
    return apart
