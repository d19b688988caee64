"""DSPy's teleprompters that write instructions: of each, the settings that we give, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from random import Random
from typing import Any, Literal

import dspy
from dspy.teleprompt.infer_rules import RulesInductionProgram
from dspy.teleprompt.mipro_optimizer_v2 import AUTO_RUN_SETTINGS
from dspy.teleprompt.simba_utils import append_a_rule
from pydantic import Field

from ...common.errors import QuestreeError, needs_extra
from ...evaluation.records import plain
from ...lm.failure import CallFailedError
from ...lm.guard import complete_demonstrations
from ...lm.limits import RunPolicy
from ...programs import Program
from ..verdicts import Verdicts
from .base import Job, Optimizer
from .dspy_changes import replaced
from .few_shot import Demonstrating

Effort = Literal["light", "medium", "heavy"]
"""How long DSPy searches, where it chooses the number of trials itself."""


class Mipro(Demonstrating):
    """MIPROv2 (Opsahl-Ong et al., EMNLP 2024): proposed instructions and demonstrations, searched together."""

    name = "mipro"
    compares = True
    auto: Effort | None = "light"
    candidates: int | None = Field(default=None, ge=2)
    trials: int | None = Field(default=None, ge=1)
    minibatch_size: int = Field(default=35, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that Optuna is there, and that either DSPy chooses how long to search, or the settings do."""
        with needs_extra("optimizers"):
            import optuna  # noqa: F401

        chosen = [self.candidates is not None, self.trials is not None]
        if any(chosen) if self.auto else not all(chosen):
            raise QuestreeError(
                "mipro takes either auto, or both candidates and trials with auto=None (--optimizer-set auto=null)."
            )

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.MIPROv2``; where it chooses how long to search, it compares on a sample of the questions."""
        compared = min(len(job.valset), AUTO_RUN_SETTINGS[self.auto]["val_size"] if self.auto else len(job.valset))
        teleprompter = dspy.MIPROv2(
            metric=job.verdicts,
            prompt_model=job.prompt_lm,
            auto=self.auto,
            num_candidates=self.candidates,
            seed=job.seed,
            init_temperature=self.init_temperature,
            **self.counts(),
        )
        return teleprompter.compile(
            student,
            teacher=job.teacher,
            trainset=job.trainset,
            valset=job.valset,
            num_trials=self.trials,
            minibatch=self.minibatch_size < compared,
            minibatch_size=min(self.minibatch_size, compared),
        )


class Simba(Optimizer):
    """SIMBA: rules and demonstrations, from the training questions that the program answers now right, now wrong."""

    name = "simba"
    unused = frozenset({"teacher"})
    batch_size: int = Field(default=32, ge=1)
    candidates: int = Field(default=6, ge=1)
    steps: int = Field(default=8, ge=1)
    max_demos: int = Field(default=4, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.SIMBA``."""
        teleprompter = dspy.SIMBA(
            metric=job.verdicts.with_feedback,
            bsize=min(self.batch_size, len(job.trainset)),
            num_candidates=self.candidates,
            max_steps=self.steps,
            max_demos=self.max_demos,
            prompt_model=job.prompt_lm,
        )
        teleprompter.strategies = [
            _about_what_ran(strategy)
            if strategy is append_a_rule
            else _with_sound_demonstrations(strategy, job.verdicts)
            for strategy in teleprompter.strategies
        ]
        return teleprompter.compile(student, trainset=job.trainset, seed=job.seed)


def _about_what_ran(append: Callable[..., bool]) -> Callable[..., bool]:
    """Return SIMBA's strategy, asking for advice on those predictors alone that were called in one of the two runs.

    It would ask for all, and add to a prompt what the LM makes up of a step that it saw nothing of. What is no JSON
    is shown as JSON: it would show the mere kind of a step in its place.
    """

    @wraps(append)
    def append_plain(bucket: list[dict[str, Any]], system: Program, **how: Any) -> bool:
        compared = (bucket[0], bucket[-1])
        called = {how["predictor2name"].get(id(step[0])) for run in compared for step in run["trace"] or []}
        named = [(name, predictor) for name, predictor in system.named_predictors() if name in called]
        with replaced(system, "named_predictors", lambda: named):
            return bool(named) and append([_in_plain_values(run) for run in bucket], system, **how)

    return append_plain


def _in_plain_values(run: dict[str, Any]) -> dict[str, Any]:
    trace = [(predictor, plain(dict(inputs)), plain(dict(reply))) for predictor, inputs, reply in run["trace"] or []]
    told = {name: run["prediction"].get(name) for name in ("final_content", "answer")} if run["prediction"] else None
    return {**run, "trace": trace, "prediction": told}


def _with_sound_demonstrations(append: Callable[..., bool], verdicts: Verdicts) -> Callable[..., bool]:
    """Return SIMBA's strategy, given only those calls of the best run that make good demonstrations.

    SIMBA takes demonstrations from a copy of the trace that the metric does not see, and of the best run also where
    its answer is not good enough.
    """

    @wraps(append)
    def append_sound(bucket: list[dict[str, Any]], system: Any, **how: Any) -> bool:
        best = bucket[0]
        if not best["output_metadata"].get("accepted"):
            return False
        sound = verdicts.sound(best["trace"] or [], best["example"], best["prediction"])
        return append([best | {"trace": sound}, *bucket[1:]], system, **how)

    return append_sound


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
        """Call ``dspy.GEPA``. A greedy LM reflects at temperature 1: it would make the same proposals again."""
        lm = job.prompt_lm or dspy.settings.lm
        teleprompter = dspy.GEPA(
            metric=job.verdicts.with_feedback,
            auto=None if self.max_metric_calls else self.auto,
            max_metric_calls=self.max_metric_calls,
            reflection_minibatch_size=self.reflection_minibatch_size,
            reflection_lm=lm.copy(temperature=1.0) if lm.kwargs.get("temperature") == 0 else lm,
            use_merge=self.use_merge,
            seed=job.seed,
        )
        return teleprompter.compile(student, trainset=job.trainset, valset=job.valset)


class InferRules(Demonstrating):
    """InferRules: the LM makes rules of each predictor's demonstrations, which its instructions then hold as well.

    Attributes:
        candidates: sets of rules that are compared on the validation questions.
        rules: that the LM is asked for, of each predictor.
    """

    name = "infer-rules"
    compares = True
    candidates: int = Field(default=8, ge=1)
    rules: int = Field(default=10, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Compare copies of the bootstrapped program, each with other rules, as ``dspy.InferRules`` does."""
        bootstrap = dspy.BootstrapFewShot(metric=job.verdicts, **self.counts())
        bootstrapped = bootstrap.compile(student, teacher=job.teacher, trainset=job.trainset)
        inducing = RulesInductionProgram(self.rules, {"lm": job.prompt_lm} if job.prompt_lm else {})
        inducing.rng = Random(job.seed)
        evaluate = dspy.Evaluate(devset=job.valset, metric=job.verdicts)
        candidates = (_with_rules(bootstrapped.deepcopy(), inducing) for _ in range(self.candidates))
        return max(candidates, key=lambda candidate: evaluate(candidate).score)


def _with_rules(program: Program, inducing: RulesInductionProgram) -> Program:
    """Add rules to the instructions of each predictor that has demonstrations, which they follow.

    DSPy would make rules of the task's rows, which lack most fields of a predictor inside a program, and show them in
    Python's notation, without a word of what they are examples of. And it would write the rules into the class of the
    signature, which all copies of the program share.
    """
    for predictor in program.predictors():
        if rules := _rules(predictor, inducing):
            instructions = f"{predictor.signature.instructions}\n\nFollow these rules:\n{rules}"
            predictor.signature = predictor.signature.with_instructions(instructions)
    return program


def _rules(predictor: dspy.Predict, inducing: RulesInductionProgram) -> str:
    """Return rules that the demonstrations follow, as many of them as the LM's window holds; "" without any."""
    shown = complete_demonstrations(predictor)
    while shown:
        try:
            return str(inducing(_as_examples(predictor.signature, shown)))
        except CallFailedError as error:
            if error.failure.cause != "context-window" or len(shown) == 1:
                raise
            shown = shown[:-1]
    return ""


def _as_examples(signature: type[dspy.Signature], demonstrations: Sequence[Any]) -> str:
    """Return the task of a predictor, and its demonstrations as its prompt shows them."""
    adapter = dspy.ChatAdapter()
    turns = adapter.format_demos(signature, [dict(one) for one in demonstrations])
    shown = [f"{'Input' if turn['role'] == 'user' else 'Output'}:\n{turn['content']}" for turn in turns]
    return "\n\n".join([f"The task:\n{signature.instructions}", adapter.format_field_description(signature), *shown])


class Copro(Optimizer):
    """COPRO: instructions, one predictor after the other; those that the LM proposes are tried.

    Attributes:
        breadth: instructions that are proposed at a time.
        depth: how often.
        init_temperature: of the proposals. DSPy's own 1.4 is more than OpenAI's reasoning models and Anthropic's take.
    """

    name = "copro"
    unused = frozenset({"teacher"})
    breadth: int = Field(default=4, ge=2)
    depth: int = Field(default=2, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.COPRO``, which compares its candidates on the training questions."""
        teleprompter = dspy.COPRO(
            prompt_model=job.prompt_lm,
            metric=job.verdicts,
            breadth=self.breadth,
            depth=self.depth,
            init_temperature=self.init_temperature,
        )
        silent = {"display_progress": False, "display_table": False}
        return teleprompter.compile(student, trainset=job.trainset, eval_kwargs=silent)
