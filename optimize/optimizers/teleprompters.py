"""DSPy's teleprompters: of each, the settings that we give, and how it is called."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial, wraps
from random import Random
from typing import Any, Literal

import dspy
from dspy.teleprompt import BootstrapFewShotWithOptuna
from dspy.teleprompt.simba_utils import append_a_rule
from pydantic import Field

from ...common.errors import QuestreeError
from ...evaluation.records import plain
from ...lm.failure import CallFailedError
from ...lm.guard import complete_demonstrations
from ...programs import Program
from ...programs.composed import Lesson, Majority, NearestDemonstrations
from ...programs.demonstrations import TraceStep, alternate, as_found, kind_of, select_demonstrations
from ..annotations import annotated_teacher
from .base import PATIENCE, Job, Optimizer
from .dspy_changes import only_errors, replaced

Effort = Literal["light", "medium", "heavy"]
"""How long DSPy searches, where it chooses the number of trials itself."""


class LabeledFewShot(Optimizer):
    """Training questions as they are; a predictor shows those fields of them that are its own.

    Attributes:
        k: questions to show.
    """

    name = "labeled-few-shot"
    unused = frozenset({"teacher", "prompt_lm"})
    k: int = Field(default=8, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.LabeledFewShot``."""
        return dspy.LabeledFewShot(k=self.k).compile(student, trainset=job.trainset)


class AnnotatedFewShot(Optimizer):
    """The steps of training questions as their annotations tell them. No LM is asked.

    Attributes:
        k: demonstrations of each predictor.
        questions: training questions that are gone through for them.
    """

    name = "annotated-few-shot"
    unused = frozenset({"teacher", "prompt_lm"})
    k: int = Field(default=4, ge=1)
    questions: int = Field(default=60, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Ask the annotations, and show of each predictor the first k steps that are good, their kinds in turn."""
        examples = _by_length(job.trainset)[: self.questions]
        teacher, taught = annotated_teacher(student, examples), student.reset_copy()
        good: dict[str, list[TraceStep]] = defaultdict(list)
        for example in examples:
            with dspy.context(trace=[]):
                prediction = teacher(**example.inputs())
                trace = list(dspy.settings.trace)
            if job.verdicts(example, prediction, trace):  # leaves one step of each predictor in the trace
                for step in trace:
                    good[step[0].stage].append(step)
        for predictor in taught.predictors():
            chosen = alternate(good[predictor.stage], kind_of)[: self.k]
            predictor.demos = [dspy.Example(augmented=True, **inputs, **reply) for _, inputs, reply in chosen]
        return taught


def _by_length(examples: Sequence[dspy.Example]) -> list[dspy.Example]:
    """Return the examples so that shorter and longer reasoning alternate; one step shows nothing of the next one."""

    def steps(example: dspy.Example) -> int:
        return len(getattr(example, "annotated_steps", None) or [])

    return alternate([one for one in examples if steps(one) != 1] or examples, steps)


class Demonstrating(Optimizer):
    """Settings that all optimizers of demonstrations share.

    Attributes:
        max_bootstrapped_demos: demonstrations of each predictor, from training questions that were answered well.
        max_labeled_demos: how many of a predictor's demonstrations may be filled up with training questions as
            they are.
    """

    max_bootstrapped_demos: int = Field(default=4, ge=0)
    max_labeled_demos: int = Field(default=4, ge=0)

    def counts(self) -> dict[str, int]:
        """Return both numbers under the names that DSPy gives them."""
        return self.model_dump(include={"max_bootstrapped_demos", "max_labeled_demos"})


class BootstrapFewShot(Demonstrating):
    """The steps of training questions that were answered well (DSPy, Khattab et al., ICLR 2024, arXiv 2310.03714)."""

    name = "bootstrap-few-shot"
    unused = frozenset({"prompt_lm"})
    max_rounds: int = Field(default=1, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.BootstrapFewShot``."""
        teleprompter = dspy.BootstrapFewShot(
            metric=job.verdicts, max_rounds=self.max_rounds, max_errors=PATIENCE, **self.counts()
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset)


class BootstrapRandomSearch(Demonstrating):
    """Bootstraps from many shufflings of the training questions, and keeps the best on the validation questions.

    Attributes:
        stop_at_score: share of the validation questions, from 0 to 1; the search ends with the first candidate that
            answers so many well.
    """

    name = "bootstrap-random-search"
    unused = frozenset({"prompt_lm"})
    compares = True
    max_rounds: int = Field(default=1, ge=1)
    candidates: int = Field(default=8, ge=1)
    stop_at_score: float | None = Field(default=None, ge=0, le=1)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.BootstrapFewShotWithRandomSearch``."""
        teleprompter = dspy.BootstrapFewShotWithRandomSearch(
            metric=job.verdicts,
            max_rounds=self.max_rounds,
            num_candidate_programs=self.candidates,
            num_threads=job.concurrency,
            stop_at_score=None if self.stop_at_score is None else round(100 * self.stop_at_score, 2),  # as it rounds
            max_errors=PATIENCE,
            **self.counts(),
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset, valset=job.valset)


class BootstrapOptuna(Demonstrating):
    """Bootstraps once, and lets Optuna search for the one demonstration of each predictor that does best together."""

    name = "bootstrap-optuna"
    unused = frozenset({"prompt_lm"})
    compares = True
    trials: int = Field(default=16, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.BootstrapFewShotWithOptuna``, whose study takes no seed."""
        import optuna

        teleprompter = _BootstrapWithOptuna(
            metric=job.verdicts, num_candidate_programs=self.trials, num_threads=job.concurrency, **self.counts()
        )
        seeded = partial(optuna.create_study, sampler=optuna.samplers.TPESampler(seed=job.seed))
        with replaced(optuna, "create_study", seeded), only_errors(logging.getLogger("optuna")):  # it has its own level
            return teleprompter.compile(
                student,
                teacher=job.teacher,
                max_demos=self.max_bootstrapped_demos,
                trainset=job.trainset,
                valset=job.valset,
            )


class _BootstrapWithOptuna(BootstrapFewShotWithOptuna):
    """DSPy's, which raises an error where a predictor was not called, and so has no demonstrations."""

    def objective(self, trial: Any) -> float:
        """Return the score of the program with one of the demonstrations of each predictor that has some."""
        tried = self.student.reset_copy()
        for (name, taught), predictor in zip(
            self.compiled_teleprompter.named_predictors(), tried.predictors(), strict=True
        ):
            if demos := complete_demonstrations(taught):
                predictor.demos = [demos[trial.suggest_int(name, 0, len(demos) - 1)]]
        score = dspy.Evaluate(devset=self.valset, metric=self.metric, num_threads=self.num_threads)(tried).score
        trial.set_user_attr("program", tried)
        return float(score)


class Ensemble(BootstrapRandomSearch):
    """The best candidates of a random search, and the answer that most of them give.

    Attributes:
        size: candidates that vote.
    """

    name = "ensemble"
    size: int = Field(default=3, ge=2)

    def make(self, student: Program, job: Job) -> Any:
        """Join the best candidates of a search."""
        best = super().make(student, job)
        ranked = [candidate["program"] for candidate in best.candidate_programs]
        return Majority(ranked[: self.size])


class KnnFewShot(Optimizer):
    """The demonstrations of the k nearest training questions, chosen anew for each question."""

    name = "knn-few-shot"
    unused = frozenset({"prompt_lm"})
    k: int = Field(default=3, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Bootstrap each training question once, with ``dspy.BootstrapFewShot``."""
        lessons = [lesson for example in job.trainset if (lesson := _lesson(student, example, job)) is not None]
        if not lessons:
            raise QuestreeError(
                f"No training question of {len(job.trainset)} was answered well, so there is nothing to learn from: "
                "give more of them, a better teacher, or a milder metric."
            )
        return NearestDemonstrations(student.reset_copy(), lessons, self.k)


def _lesson(student: Program, example: dspy.Example, job: Job) -> Lesson | None:
    """Return what one training question teaches, or None if it was not answered well."""
    teleprompter = dspy.BootstrapFewShot(
        metric=job.verdicts, max_bootstrapped_demos=1, max_labeled_demos=0, max_errors=PATIENCE
    )
    taught = teleprompter.compile(student, teacher=job.teacher, trainset=[example])
    demonstrations = {name: part["demos"] for name, part in taught.dump_state().items() if part["demos"]}
    inputs = {key: str(value) for key, value in example.inputs().items()}
    return Lesson(inputs=inputs, demonstrations=demonstrations) if demonstrations else None


class Mipro(Demonstrating):
    """MIPROv2 (Opsahl-Ong et al., EMNLP 2024): proposed instructions and demonstrations, searched together."""

    name = "mipro"
    compares = True
    auto: Effort | None = "light"
    candidates: int | None = Field(default=None, ge=2)
    trials: int | None = Field(default=None, ge=1)
    minibatch_size: int = Field(default=35, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """Call ``dspy.MIPROv2``."""
        if (self.auto is None) != (self.candidates is not None and self.trials is not None):
            raise QuestreeError("mipro takes either auto, or auto=None with both candidates and trials.")
        teleprompter = dspy.MIPROv2(
            metric=job.verdicts,
            prompt_model=job.prompt_lm,
            auto=self.auto,
            num_candidates=self.candidates,
            num_threads=job.concurrency,
            max_errors=PATIENCE,
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
            minibatch=self.minibatch_size < len(job.valset),
            minibatch_size=min(self.minibatch_size, len(job.valset)),
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
            num_threads=job.concurrency,
        )
        teleprompter.strategies = [
            _with_plain_values(strategy) if strategy is append_a_rule else _with_sound_demonstrations(strategy)
            for strategy in teleprompter.strategies
        ]
        return teleprompter.compile(student, trainset=job.trainset, seed=job.seed)


def _with_plain_values(append: Callable[..., bool]) -> Callable[..., bool]:
    """Return SIMBA's strategy, shown what is no JSON as JSON: it would show the mere kind of a step in its place."""

    @wraps(append)
    def append_plain(bucket: list[dict[str, Any]], system: Any, **how: Any) -> bool:
        return append([_in_plain_values(run) for run in bucket], system, **how)

    return append_plain


def _in_plain_values(run: dict[str, Any]) -> dict[str, Any]:
    trace = [(predictor, plain(dict(inputs)), plain(dict(reply))) for predictor, inputs, reply in run["trace"] or []]
    told = {name: run["prediction"].get(name) for name in ("final_content", "answer")} if run["prediction"] else None
    return {**run, "trace": trace, "prediction": told}


def _with_sound_demonstrations(append: Callable[..., bool]) -> Callable[..., bool]:
    """Return SIMBA's strategy, given only those calls of the best run that make good demonstrations.

    SIMBA takes demonstrations from a copy of the trace that the metric does not see.
    """

    @wraps(append)
    def append_sound(bucket: list[dict[str, Any]], system: Any, **how: Any) -> bool:
        best = bucket[0]
        trace = select_demonstrations(best["trace"] or [], best["example"])
        tree = getattr(best["prediction"], "tree", None)
        sound = [as_found(step, tree) for step in trace] if tree is not None else trace
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
            num_threads=job.concurrency,
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
        """Call ``dspy.InferRules``."""
        teleprompter = _InferRules(
            metric=job.verdicts,
            num_candidates=self.candidates,
            num_rules=self.rules,
            num_threads=job.concurrency,
            max_errors=PATIENCE,
            **self.counts(),
        )
        inducing = teleprompter.rules_induction_program
        inducing.rng = Random(job.seed)
        inducing.teacher_settings = {"lm": job.prompt_lm} if job.prompt_lm else {}
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset, valset=job.valset)


class _InferRules(dspy.InferRules):
    """DSPy's, in four points otherwise.

    It would make rules of the task's rows, which lack most fields of a predictor inside a program, and show them in
    Python's notation, without a word of what they are examples of. It would know a prompt that is too long by errors
    that its LM no longer raises. And it would write the rules into the class of the
    signature, which all copies of the program share: the last candidate's would stand in the best one, and in the
    program that was given.
    """

    def induce_natural_language_rules(self, predictor: dspy.Predict, trainset: list[dspy.Example]) -> str:
        """Return rules that the predictor's demonstrations follow, or as many of them as the LM's window holds.

        A predictor without demonstrations gets none.
        """
        shown = complete_demonstrations(predictor)
        while shown:
            try:
                return str(self.rules_induction_program(_as_examples(predictor.signature, shown)))
            except CallFailedError as error:
                if error.failure.cause != "context-window" or len(shown) == 1:
                    raise
                shown = shown[:-1]
        return ""

    def update_program_instructions(self, predictor: dspy.Predict, natural_language_rules: str) -> None:
        """Add rules to the instructions of this predictor alone."""
        if natural_language_rules:
            instructions = f"{predictor.signature.instructions}\n\nFollow these rules:\n{natural_language_rules}"
            predictor.signature = predictor.signature.with_instructions(instructions)


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
        silent = {"num_threads": job.concurrency, "display_progress": False, "display_table": False}
        return teleprompter.compile(student, trainset=job.trainset, eval_kwargs=silent)
