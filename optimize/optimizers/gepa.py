"""GEPA: instructions that evolve as an LM reflects on what went wrong."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import dspy
from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS
from dspy.teleprompt.gepa.gepa_utils import DspyAdapter, LoggerAdapter
from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer
from pydantic import Field

from ...common.errors import QuestreeError
from ...lm.limits import RunPolicy
from ...programs import Program
from .base import Job, Optimizer
from .instructions import Effort
from .scores import Scoring


class Gepa(Optimizer):
    """GEPA (Agrawal et al., 2025, arXiv 2507.19457): instructions that evolve as the LM reflects on what went wrong."""

    name = "gepa"
    unused = frozenset({"teacher"})
    compares = True
    auto: Effort | None = "light"
    max_metric_calls: int | None = Field(default=None, ge=1)
    reflection_minibatch_size: int = Field(default=3, ge=1)
    use_merge: bool = True

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that something bounds the search."""
        if self.auto is None and self.max_metric_calls is None:
            raise QuestreeError("gepa takes auto, or max_metric_calls: without both nothing bounds its search.")

    def make(self, student: Program, job: Job) -> Any:
        """Call ``gepa.optimize`` as ``dspy.GEPA`` does, but without bars, and with scores by `Scoring`."""
        from gepa.api import optimize

        lm, named = job.prompt_lm or dspy.settings.lm, student.named_predictors()
        adapter = _ScoringAdapter(
            student,
            job.verdicts.with_feedback,
            {name: _feedback(job, name, predictor) for name, predictor in named},
            rng=Random(job.seed),
            reflection_lm=reflecting(lm),
            custom_instruction_proposer=InstructionProposer(adapter=job.proposals.adapter(dspy.JSONAdapter())),
            reflection_minibatch_size=self.reflection_minibatch_size,
        )
        found: Any = optimize(
            seed_candidate={name: predictor.signature.instructions for name, predictor in named},
            trainset=job.trainset,
            valset=job.valset,
            adapter=adapter,
            reflection_minibatch_size=self.reflection_minibatch_size,
            use_merge=self.use_merge,
            max_metric_calls=self.max_metric_calls or self._budget(len(named), len(job.valset)),
            logger=LoggerAdapter(logging.getLogger("gepa")),
            track_best_outputs=False,
            seed=job.seed,
        )
        return adapter.build_program(found.best_candidate)

    def _budget(self, predictors: int, questions: int) -> int:
        """Return how often DSPy would call the metric."""
        reads_nothing_of_itself = None
        budget: int = dspy.GEPA.auto_budget(
            reads_nothing_of_itself, predictors, AUTO_RUN_SETTINGS[self.auto]["n"], questions
        )
        return budget


def reflecting(lm: dspy.BaseLM) -> dspy.BaseLM:
    """Return the LM that reflects. A greedy one does at temperature 1: it would make the same proposals again."""
    return lm.copy(temperature=1.0) if lm.kwargs.get("temperature") == 0 else lm


def _feedback(job: Job, name: str, predictor: dspy.Predict) -> Any:
    """Return the function that gives GEPA feedback on one call of a predictor."""

    def feedback(
        predictor_output: Any, predictor_inputs: Any, module_inputs: Any, module_outputs: Any, captured_trace: Any
    ) -> dspy.Prediction:
        step = [(predictor, predictor_inputs, predictor_output)]
        return job.verdicts.with_feedback(module_inputs, module_outputs, captured_trace, name, step)

    return feedback


class _ScoringAdapter(DspyAdapter):
    """DSPy's adapter of programs for GEPA, with our scores."""

    def evaluate(
        self,
        batch: list[dspy.Example],
        candidate: dict[str, str],
        capture_traces: bool = False,
        num_threads: Any = None,
    ) -> Any:
        """Score a candidate; return its steps as well, if they are wanted."""
        scoring = Scoring(devset=batch, metric=self.metric_fn, num_threads=num_threads)
        results = scoring(self.build_program(candidate)).results
        told = [
            {"example_ind": n, "example": example, "prediction": prediction, "trace": trace, "score": score}
            for n, ((example, prediction, score), trace) in enumerate(zip(results, scoring.traces, strict=True))
            if trace is not None
        ]
        return self._make_evaluation_batch(
            outputs=[prediction for _, prediction, _ in results],
            raw_scores=[score for *_, score in results],
            trajectories=told if capture_traces else None,
        )
