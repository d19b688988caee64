"""SIMBA: rules and demonstrations, from the training questions that a program answers now right, now wrong.

The loop is written here because DSPy's shows bars and asks a slow question twice, see `scores`; its parts are DSPy's.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any

import dspy
import numpy as np
from dspy.teleprompt.simba_utils import append_a_demo, append_a_rule, prepare_models_for_resampling, wrap_program
from pydantic import Field

from ...evaluation.records import plain
from ...programs import Program
from .base import Job, Optimizer
from .scores import in_parallel

_TEMPERATURE = 0.2  # of the draw of a program by its score
_LONGEST_INPUT = 100_000  # characters of an input of a demonstration

Run = dict[str, Any]
"""A question as `wrap_program` asked it: example, prediction, trace, score, and what else the metric says."""


class Simba(Optimizer):
    """SIMBA: rules and demonstrations, from the training questions that the program answers now right, now wrong."""

    name = "simba"
    unused = frozenset({"teacher"})
    batch_size: int = Field(default=32, ge=1)
    candidates: int = Field(default=6, ge=1)
    steps: int = Field(default=8, ge=1)
    max_demos: int = Field(default=4, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """Change the program batch by batch, as ``dspy.SIMBA`` does; return the best on all training questions."""
        search = _SimbaSearch(self, student, job)
        winners, batches = [search.pool[0]], _batches(job.trainset, self.batch_size, search.rng)
        for _, batch in zip(range(self.steps), batches, strict=False):
            candidates = search.candidates(batch)
            scores = search.scores(candidates, batch)
            if candidates:
                best = max(range(len(candidates)), key=lambda n: _mean(scores[n]))
                winners.append(candidates[best].deepcopy())
            search.pool += candidates
            search.scored += scores
        spread = [round(n * (len(winners) - 1) / self.candidates) for n in range(self.candidates + 1)]
        finalists = [winners[n] for n in dict.fromkeys(spread)]
        scores = search.scores(finalists, job.trainset)
        ranked = sorted(zip(map(_mean, scores), finalists, strict=True), key=lambda one: one[0], reverse=True)
        best = ranked[0][1].deepcopy()
        best.candidate_programs = [{"score": score, "program": program} for score, program in ranked]
        return best


def _batches(trainset: Sequence[dspy.Example], size: int, rng: Random) -> Any:
    """Yield batches of questions without an end; the questions are shuffled when too few are left."""
    order, size = [*range(len(trainset))], min(size, len(trainset))
    rng.shuffle(order)
    at = 0
    for _ in count():
        if at + size > len(order):
            rng.shuffle(order)
            at = 0
        yield [trainset[n] for n in order[at : at + size]]
        at += size


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else 0.0


class _SimbaSearch:
    """The programs that were made so far, the first of them the student, and their scores."""

    def __init__(self, settings: Simba, student: Program, job: Job):
        self.settings, self.job = settings, job
        self.rng, self.numbers = Random(job.seed), np.random.default_rng(job.seed)
        self.pool, self.scored = [student.deepcopy()], list[list[float]]([[]])
        self.strategies = [self.demonstrate, self.rule] if settings.max_demos else [self.rule]

    def candidates(self, batch: Sequence[dspy.Example]) -> list[Program]:
        """Return new programs, each with what one question taught, those first of which the answers differ most."""
        runs, names = self.sampled(batch)
        scores = [float(run["score"]) for run in runs]
        low, high = np.percentile(scores, 10), np.percentile(scores, 90)
        buckets = [sorted(runs[n :: len(batch)], key=lambda run: run["score"], reverse=True) for n in range(len(batch))]
        made = list[Program]()
        for bucket in sorted(buckets, key=_promise, reverse=True):
            program = self.forgetful(self.pool[self.draw()].deepcopy())
            how: dict[str, Any] = {"predictor2name": names, "name2predictor": dict(program.named_predictors())}
            how |= {"batch_10p_score": low, "batch_90p_score": high, "prompt_model": self.job.prompt_lm}
            learn = self.rng.choice(self.strategies)
            try:
                learn(bucket, program, how)
            except Exception:  # one candidate less, as in DSPy; `Proposals` tells which requests failed
                continue
            made.append(program)
            if len(made) > self.settings.candidates:
                break
        return made

    def sampled(self, batch: Sequence[dspy.Example]) -> tuple[list[Run], dict[int, str]]:
        """Ask a batch once for each sample, each time with a program of the pool; return the predictors' names too."""
        tasks, names = [], dict[int, str]()
        top = self.top()
        for lm in prepare_models_for_resampling(self.pool[0], self.settings.candidates):
            for example in batch:
                program = self.pool[self.draw(top)].deepcopy()
                program.set_lm(lm)
                names |= {id(predictor): name for name, predictor in program.named_predictors()}
                tasks.append((wrap_program(program, self.job.verdicts.with_feedback), example))
        return in_parallel(tasks), names

    def scores(self, programs: Sequence[Program], examples: Sequence[dspy.Example]) -> list[list[float]]:
        """Return the scores of each program on each example."""
        asked = [wrap_program(program, self.job.verdicts.with_feedback) for program in programs]
        runs = iter(in_parallel([(ask, example) for ask in asked for example in examples]))
        return [[next(runs)["score"] for _ in examples] for _ in programs]

    def top(self) -> list[int]:
        """Return the places of the best programs, the student always among them."""
        ranked = sorted(range(len(self.pool)), key=lambda n: _mean(self.scored[n]), reverse=True)
        best = ranked[: self.settings.candidates]
        return list(dict.fromkeys(best if 0 in best else [*best[:-1], 0]))

    def draw(self, among: Sequence[int] | None = None) -> int:
        """Return the place of a program, drawn by its score; of the best where None."""
        among = among or self.top()
        weights = [np.exp(_mean(self.scored[n]) / _TEMPERATURE) for n in among]
        whole = sum(weights)
        return self.rng.choices(among, weights=[weight / whole for weight in weights], k=1)[0]

    def forgetful(self, program: Program) -> Program:
        """Return the program without some of its demonstrations; without at least one where it has the most."""
        shown, most = max(len(one.demos) for one in program.predictors()), self.settings.max_demos or 3
        dropped = min(max(self.numbers.poisson(shown / most), int(shown >= most)), shown)
        drops = [self.rng.randrange(shown) for _ in range(dropped)]
        for predictor in program.predictors():
            predictor.demos = [demo for n, demo in enumerate(predictor.demos) if n not in drops]
        return program

    def demonstrate(self, bucket: list[Run], program: Program, how: dict[str, Any]) -> None:
        """Add the sound calls of the best run as demonstrations, if its answer is good enough.

        DSPy takes demonstrations from a copy of the trace that the metric does not see, and of any best run.
        """
        best, verdicts = bucket[0], self.job.verdicts
        if best["output_metadata"].get("accepted"):
            sound = verdicts.sound(best["trace"] or [], best["example"], best["prediction"])
            append_a_demo(_LONGEST_INPUT)([best | {"trace": sound}, *bucket[1:]], program, **how)

    def rule(self, bucket: list[Run], program: Program, how: dict[str, Any]) -> None:
        """Add advice to the instructions of those predictors that were called in the best or the worst run.

        DSPy asks for advice on all, and adds to a prompt what the LM makes up of a step that it saw nothing of. What
        is no JSON is shown as JSON: DSPy would show the mere kind of a step in its place.
        """
        traces = [step for run in (bucket[0], bucket[-1]) for step in run["trace"] or []]
        called = {how["predictor2name"].get(id(predictor)) for predictor, *_ in traces}
        named = [(name, predictor) for name, predictor in program.named_predictors() if name in called]
        if named:
            shown: Any = copy.copy(program)  # has the same predictors
            shown.named_predictors = lambda: named
            with self.job.proposals.asked(self.job.prompt_lm):
                append_a_rule([_in_plain_values(run) for run in bucket], shown, **how)


def _promise(bucket: list[Run]) -> tuple[float, float, float]:
    """Return how far the answers to a question differ, and how good the best of them is."""
    best, worst = float(bucket[0]["score"]), float(bucket[-1]["score"])
    return best - worst, best, best - sum(run["score"] for run in bucket) / len(bucket)


def _in_plain_values(run: Run) -> Run:
    trace = [(predictor, plain(dict(inputs)), plain(dict(reply))) for predictor, inputs, reply in run["trace"] or []]
    told = {name: run["prediction"].get(name) for name in ("final_content", "answer")} if run["prediction"] else None
    return {**run, "trace": trace, "prediction": told}
