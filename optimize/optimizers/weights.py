"""Optimizers that train the LM itself: alone, and in turn with one that changes the prompts."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import dspy
from dspy.clients.utils_finetune import infer_data_format
from dspy.teleprompt import bootstrap_finetune
from pydantic import Field, JsonValue

from ...common.errors import QuestreeError
from ...lm.guard import adapter_in_use, shown_demonstrations
from ...lm.policy import RunPolicy
from ...programs import Program
from ..candidates import CandidateKeeper
from ..trainings import check_trainable
from .base import Job, Optimizer
from .dspy_changes import replaced
from .few_shot import BootstrapFewShot, BootstrapRandomSearch
from .instructions import Copro, Gepa, InferRules, Mipro, Simba


class Training(Optimizer):
    """An optimizer that lets the LM's provider train the LM: one LM for all prompts of the program (multitask).

    Attributes:
        exclude_demos: whether the LM is trained, and then asked, without the demonstrations of its prompts.
        train_kwargs: what the provider is told beside the data, such as ``{"n_epochs": 3}``.
    """

    trains = True
    exclude_demos: bool = False
    train_kwargs: dict[str, JsonValue] = Field(default_factory=dict)

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that the configured LM can be trained."""
        check_trainable(policy)


class BootstrapFinetune(Training):
    """The LM is trained on the steps of training questions that were answered well (DSPy's BootstrapFinetune)."""

    name = "bootstrap-finetune"
    unused = frozenset({"prompt_lm"})

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.BootstrapFinetune``; each predictor of what it returns has the trained LM."""
        student.set_lm(student.predictors()[0].lm or dspy.settings.lm)
        teleprompter = _Finetune(job, self.exclude_demos, dict(self.train_kwargs))
        with replaced(bootstrap_finetune, "bootstrap_trace_data", _bootstrap_unwatched):
            trained = teleprompter.compile(student, trainset=job.trainset, teacher=job.teacher)
        for asked in (student, job.teacher):
            (asked or student).__dict__.pop("forward", None)  # DSPy replaced it for a while
        return trained


class _Finetune(dspy.BootstrapFinetune):
    """DSPy's, with data of the steps that make good demonstrations, and a training that a second run goes on with."""

    def __init__(self, job: Job, exclude_demos: bool, train_kwargs: dict[str, Any]):
        super().__init__(metric=job.verdicts.accepts, exclude_demos=exclude_demos, train_kwargs=train_kwargs)
        self.job = job

    def _prepare_finetune_data(self, trace_data: list[Any], lm: dspy.LM, pred_ind: int | None = None) -> Any:
        """Return what the LM is trained on: each good step's prompt as it was sent, and its reply."""
        adapter, verdicts = adapter_in_use(), self.job.verdicts
        good = [one for one in trace_data if one["score"]]
        steps = [step for one in good for step in verdicts.sound(one["trace"], one["example"], one["prediction"])]
        if not steps:
            raise QuestreeError(
                f"Of {len(trace_data)} training questions, {len(good)} were answered well, and no step of theirs can "
                "be learned from: give more of them, a better teacher (--teacher), or a milder metric."
            )
        data = [
            adapter.format_finetune_data(
                signature=predictor.signature,
                demos=[] if self.exclude_demos else shown_demonstrations(predictor, adapter),
                inputs=inputs,
                outputs=reply,
            )
            for predictor, inputs, reply in steps
        ]
        Random(self.job.seed).shuffle(data)
        return data, infer_data_format(adapter)

    def finetune_lms(self, finetune_dict: dict[Any, dict[str, Any]]) -> dict[Any, dspy.LM]:
        """Return the trained LM."""
        return {
            key: self.job.trainings.train(
                asked["lm"], asked["train_data"], asked["train_data_format"], asked["train_kwargs"]
            )
            for key, asked in finetune_dict.items()
        }


def _bootstrap_unwatched(**asked: Any) -> Any:
    """Ask the training questions; that DSPy scores them with `dspy.Evaluate` makes no candidate of the program."""
    from dspy.teleprompt.bootstrap_trace import bootstrap_trace_data

    watching = [one for one in dspy.settings.callbacks if not isinstance(one, CandidateKeeper)]
    with dspy.context(callbacks=watching):
        return bootstrap_trace_data(**asked)


_PROMPTS: dict[str, type[Optimizer]] = {
    kind.name: kind for kind in (BootstrapRandomSearch, BootstrapFewShot, Mipro, Gepa, Simba, Copro, InferRules)
}
"""The optimizers of prompts whose program has the predictors of the one that went in."""


class BetterTogether(Training):
    """Prompts and LM in turn (Soylu et al., EMNLP 2024, arXiv 2407.10930); the best program on validation questions.

    Attributes:
        strategy: ``p`` changes the prompts, ``w`` trains the LM, in this order.
        prompt_optimizer: does ``p``, with its default settings.
    """

    name = "better-together"
    compares = True
    strategy: str = Field(default="p -> w -> p", pattern=r"^[pw]( -> [pw])*$")
    prompt_optimizer: str = Field(default="bootstrap-random-search", pattern=f"^({'|'.join(_PROMPTS)})$")

    def leaves_aside(self) -> frozenset[str]:
        """Return what neither of the optimizers that the strategy names asks."""
        kinds: dict[str, type[Optimizer]] = {"p": _PROMPTS[self.prompt_optimizer], "w": BootstrapFinetune}
        return frozenset.intersection(*(kinds[step].unused for step in self.strategy.split(" -> ")))

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.BetterTogether``; the predictors of what it returns have the LM that did best."""
        student.set_lm(dspy.settings.lm)
        weights = BootstrapFinetune(exclude_demos=self.exclude_demos, train_kwargs=self.train_kwargs)
        steps = {"p": _Step(_PROMPTS[self.prompt_optimizer](), job), "w": _Step(weights, job)}
        together = dspy.BetterTogether(metric=job.verdicts, **steps)
        best = together.compile(
            student,
            trainset=job.trainset,
            valset=job.valset,
            num_threads=job.concurrency,
            seed=job.seed,
            strategy=self.strategy,
        )
        for step in steps.values():
            if step.error is not None:  # DSPy logs it, and gives what it had until then
                raise step.error
        return best


class _Step(dspy.teleprompt.Teleprompter):
    """One of our optimizers as ``dspy.BetterTogether`` calls one."""

    def __init__(self, optimizer: Optimizer, job: Job):
        super().__init__()
        self.optimizer, self.job = optimizer, job
        self.error: Exception | None = None

    def compile(self, student: Program, *, trainset: list[Any], valset: list[Any] | None = None) -> Any:
        """Return the student, compiled. Predictors that the optimizer takes the LM from are asked with it, too."""
        try:
            with dspy.context(lm=student.predictors()[0].lm):
                return self.optimizer.make(student, replace(self.job, trainset=trainset, valset=valset or []))
        except Exception as error:
            self.error = error
            raise
