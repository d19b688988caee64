"""Optimizers that train the LM itself: alone, and in turn with one that changes the prompts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import dspy
from dspy.clients.utils_finetune import infer_data_format
from pydantic import Field, JsonValue

from ...common.errors import QuestreeError
from ...evaluation.pools import Threads
from ...lm.guard import adapter_in_use, shown_demonstrations
from ...lm.limits import RunPolicy
from ...programs import Program
from ...programs.demonstrations import TraceStep
from ..trainings import check_trainable
from ..verdicts import Verdicts
from .base import Job, Optimizer
from .few_shot import BootstrapFewShot, BootstrapRandomSearch
from .gepa import Gepa
from .instructions import Copro, InferRules, Mipro
from .scores import Scoring
from .simba import Simba


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
    """The LM is trained on the steps of training questions that were answered well (as DSPy's BootstrapFinetune)."""

    name = "bootstrap-finetune"
    unused = frozenset({"prompt_lm"})

    def make(self, student: Program, job: Job) -> Any:
        """Ask the training questions, and train the LM on each good step: its prompt as it was sent, and its reply.

        Each predictor of what it returns has the trained LM.
        """
        adapter, lm = adapter_in_use(), student.predictors()[0].lm or dspy.settings.lm
        learn = partial(_good_steps, job.teacher or student, job.verdicts)
        answered = [steps for steps in Threads(job.concurrency).map(learn, job.trainset) if steps is not None]
        if not any(answered):
            raise QuestreeError(
                f"Of {len(job.trainset)} training questions, {len(answered)} were answered well, and no step of theirs "
                "can be learned from: give more of them, a better teacher (--teacher), or a milder metric."
            )
        data = [
            adapter.format_finetune_data(
                signature=predictor.signature,
                demos=[] if self.exclude_demos else shown_demonstrations(predictor, adapter),
                inputs=inputs,
                outputs=reply,
            )
            for steps in answered
            for predictor, inputs, reply in steps
        ]
        Random(job.seed).shuffle(data)
        student.set_lm(job.trainings.train(lm, data, infer_data_format(adapter), dict(self.train_kwargs)))
        if self.exclude_demos:
            for predictor in student.predictors():
                predictor.demos = []
        return student


def _good_steps(program: Program, verdicts: Verdicts, example: dspy.Example) -> list[TraceStep] | None:
    """Return the steps of a question that make good demonstrations, or None if it was not answered well."""
    with dspy.context(trace=[]):
        prediction = program(**example.inputs())
        trace = dspy.settings.trace
    return verdicts.sound(trace, example, prediction) if verdicts.accepts(example, prediction) else None


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
        """Take the steps of the strategy, each where the one before ended, as ``dspy.BetterTogether`` does.

        The predictors of what it returns have the LM that did best.
        """
        weights = BootstrapFinetune(exclude_demos=self.exclude_demos, train_kwargs=self.train_kwargs)
        optimizers: dict[str, Optimizer] = {"p": _PROMPTS[self.prompt_optimizer](), "w": weights}
        evaluate = Scoring(devset=job.valset, metric=job.verdicts)
        shuffling, trainset, lm = Random(job.seed), [*job.trainset], dspy.settings.lm
        student.set_lm(lm)
        tried = [(evaluate(student).score, student.deepcopy())]
        for step in self.strategy.split(" -> "):
            shuffling.shuffle(trainset)
            student._compiled = False
            with dspy.context(lm=lm):  # predictors that the optimizer takes the LM from are asked with it, too
                student = optimizers[step].make(student, replace(job, trainset=[*trainset]))
            if step == "w":
                lm = student.predictors()[0].lm
                lm.launch()  # one that is served on this machine
            student.set_lm(lm)
            tried.append((evaluate(student).score, student.deepcopy()))
        lm.kill()
        return max(tried, key=lambda one: one[0])[1]
