"""DSPy's teleprompters by name, each with its settings and its own way of being called.

To add one: its class here, and its name follows. A class says what may be set, builds DSPy's teleprompter, and
compiles; what comes out answers as the program that went in, and can be saved as JSON.
"""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..programs import Program
from ..retrieval.errors import QuestreeError
from .clustering import clusters
from .composed import Lesson, Majority, NearestDemonstrations
from .policy import HOPELESS
from .verdicts import Verdicts

PATIENCE = 1_000_000  # DSPy gives up, and loses everything, at ten errors; failures are counted by us


@dataclass(frozen=True)
class Job:
    """What an optimizer is given beside the program.

    Attributes:
        verdicts: the metric, boolean.
        trainset: what demonstrations are taken from.
        valset: what candidates are compared on; empty for an optimizer that compares none.
        seed: of everything random.
        concurrency: questions asked at the same time.
        prompt_lm: writes instructions, where an optimizer wants some; the program's own LM by default.
        teacher: makes the demonstrations, where another program than the student should.
    """

    verdicts: Verdicts
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    seed: int = 0
    concurrency: int = 4
    prompt_lm: dspy.BaseLM | None = None
    teacher: Program | None = None


class Optimizer(BaseModel):
    """An optimizer and its settings: frozen, and saved with what it made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    """Whether it compares candidates on validation questions; otherwise all questions are for training."""

    def compile(self, student: Program, job: Job) -> Program:
        """A compiled copy of the student."""
        program: Program = self.make(student, job)
        return program

    @abstractmethod
    def make(self, student: Program, job: Job) -> Any:
        """What DSPy's teleprompter makes of the student."""


class _Demonstrations(Optimizer):
    """Settings that all optimizers of demonstrations share.

    Attributes:
        max_bootstrapped_demos: demonstrations a predictor, from training questions that were answered well.
        max_labeled_demos: how many of a predictor's demonstrations may be filled up with training questions as
            they are.
    """

    max_bootstrapped_demos: int = Field(default=4, ge=0)
    max_labeled_demos: int = Field(default=4, ge=0)

    def counts(self) -> dict[str, int]:
        """As DSPy names them."""
        return {
            "max_bootstrapped_demos": self.max_bootstrapped_demos,
            "max_labeled_demos": self.max_labeled_demos,
        }


class LabeledFewShot(Optimizer):
    """k training questions as they are; a predictor shows those fields of them that are its own."""

    name = "labeled-few-shot"
    k: int = Field(default=8, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        return dspy.LabeledFewShot(k=self.k).compile(student, trainset=job.trainset)


class BootstrapFewShot(_Demonstrations):
    """The steps of training questions that were answered well."""

    name = "bootstrap-few-shot"
    max_rounds: int = Field(default=1, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.BootstrapFewShot(
            metric=job.verdicts, max_rounds=self.max_rounds, max_errors=PATIENCE, **self.counts()
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset)


class BootstrapRandomSearch(_Demonstrations):
    """Bootstraps from many shufflings of the training questions and keeps the best on the validation questions."""

    name = "bootstrap-random-search"
    compares = True
    max_rounds: int = Field(default=1, ge=1)
    candidates: int = Field(default=8, ge=1)
    stop_at_score: float | None = Field(default=None, ge=0, le=100)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.BootstrapFewShotWithRandomSearch(
            metric=job.verdicts,
            max_rounds=self.max_rounds,
            num_candidate_programs=self.candidates,
            num_threads=job.concurrency,
            stop_at_score=self.stop_at_score,
            max_errors=PATIENCE,
            **self.counts(),
        )
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset, valset=job.valset)


class Mipro(_Demonstrations):
    """MIPROv2: instructions that the LM proposes, and demonstrations, searched together."""

    name = "mipro"
    compares = True
    auto: Literal["light", "medium", "heavy"] | None = "light"
    candidates: int | None = Field(default=None, ge=2)
    trials: int | None = Field(default=None, ge=1)
    minibatch_size: int = Field(default=35, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
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
    """SIMBA: rules and demonstrations from the training questions on which the program wavers."""

    name = "simba"
    batch_size: int = Field(default=32, ge=1)
    candidates: int = Field(default=6, ge=1)
    steps: int = Field(default=8, ge=1)
    max_demos: int = Field(default=4, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.SIMBA(
            metric=job.verdicts,
            bsize=min(self.batch_size, len(job.trainset)),
            num_candidates=self.candidates,
            max_steps=self.steps,
            max_demos=self.max_demos,
            prompt_model=job.prompt_lm,
            num_threads=job.concurrency,
        )
        return teleprompter.compile(student, trainset=job.trainset, seed=job.seed)


class Gepa(Optimizer):
    """GEPA: instructions that evolve as the LM reflects on what went wrong."""

    name = "gepa"
    compares = True
    auto: Literal["light", "medium", "heavy"] | None = "light"
    max_metric_calls: int | None = Field(default=None, ge=1)
    reflection_minibatch_size: int = Field(default=3, ge=1)
    use_merge: bool = True

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        teleprompter = dspy.GEPA(
            metric=job.verdicts.with_feedback,
            auto=None if self.max_metric_calls else self.auto,
            max_metric_calls=self.max_metric_calls,
            reflection_minibatch_size=self.reflection_minibatch_size,
            reflection_lm=job.prompt_lm or dspy.settings.lm,
            use_merge=self.use_merge,
            num_threads=job.concurrency,
            seed=job.seed,
        )
        return teleprompter.compile(student, trainset=job.trainset, valset=job.valset)


class Copro(Optimizer):
    """COPRO: instructions, one predictor after the other, by trying those that the LM proposes."""

    name = "copro"
    breadth: int = Field(default=4, ge=2)
    depth: int = Field(default=2, ge=1)
    init_temperature: float = Field(default=1.4, ge=0)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`. Candidates are compared on the training questions."""
        teleprompter = dspy.COPRO(
            prompt_model=job.prompt_lm,
            metric=job.verdicts,
            breadth=self.breadth,
            depth=self.depth,
            init_temperature=self.init_temperature,
        )
        silent = {"num_threads": job.concurrency, "display_progress": False, "display_table": False}
        return teleprompter.compile(student, trainset=job.trainset, eval_kwargs=silent)


class AutoCoT(Optimizer):
    """Auto-CoT (Zhang et al., ICLR 2023, section 4): of each cluster of training questions, the program's own steps.

    The questions are clustered; of each cluster, the one nearest to its centre that is simple enough is asked, and
    what the program replied becomes a demonstration. Right answers are neither needed nor looked at. The paper
    clusters sentence embeddings, we TF-IDF, which needs no model.

    Attributes:
        demonstrations: how many, and so how many clusters (SearChain, table 8: 4 for most tasks).
        max_question_words: a longer question is passed over.
        max_sentences: of reasoning; a question that took more is passed over.
    """

    name = "auto-cot"
    demonstrations: int = Field(default=4, ge=1)
    max_question_words: int = Field(default=60, ge=1)
    max_sentences: int = Field(default=5, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        compiled = student.reset_copy()
        asked = compiled.deepcopy()  # has no demonstrations while they are made
        predictors = dict(compiled.named_predictors())
        found = clusters([example.question for example in job.trainset], self.demonstrations, job.seed)
        for members in found:
            for name, demonstration in self.steps(asked, [job.trainset[index] for index in members]).items():
                predictors[name].demos.append(demonstration)
        if not any(predictor.demos for predictor in predictors.values()):
            raise QuestreeError(f"None of {len(job.trainset)} training questions was answered simply enough to show.")
        return compiled

    def steps(self, program: Program, cluster: list[dspy.Example]) -> dict[str, dspy.Example]:
        """Each predictor's first step on the first of the questions that is simple enough; empty if none is."""
        names = {id(predictor): name for name, predictor in program.named_predictors()}
        for example in cluster:
            if len(example.question.split()) > self.max_question_words:
                continue
            with dspy.context(trace=[]):
                prediction = program(**example.inputs())
                trace = dspy.settings.trace
            if prediction.failure is not None and prediction.failure.cause in HOPELESS:
                raise QuestreeError(f"A training question could not be asked: {prediction.failure}.")
            if prediction.failure is None and _sentences(prediction.final_content) <= self.max_sentences:
                return {
                    names[id(predictor)]: dspy.Example(augmented=True, **inputs, **reply)
                    for predictor, inputs, reply in reversed(trace)
                }
        return {}


class KnnFewShot(Optimizer):
    """The demonstrations of the k nearest training questions, chosen anew for each question."""

    name = "knn-few-shot"
    k: int = Field(default=3, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`. Each training question is bootstrapped once."""
        lessons = [lesson for example in job.trainset if (lesson := _lesson(student, example, job)) is not None]
        if not lessons:
            raise QuestreeError(
                f"No training question of {len(job.trainset)} was answered well, so there is nothing to learn from: "
                "give more of them, a better teacher, or a milder metric."
            )
        return NearestDemonstrations(student.reset_copy(), lessons, self.k)


class Ensemble(BootstrapRandomSearch):
    """The best candidates of a random search, and the answer that most of them give."""

    name = "ensemble"
    size: int = Field(default=3, ge=2)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        best = super().make(student, job)
        ranked = [candidate["program"] for candidate in best.candidate_programs]
        return Majority(ranked[: self.size])


def _lesson(student: Program, example: dspy.Example, job: Job) -> Lesson | None:
    """What one training question teaches; None where it was not answered well."""
    teleprompter = dspy.BootstrapFewShot(
        metric=job.verdicts, max_bootstrapped_demos=1, max_labeled_demos=0, max_errors=PATIENCE
    )
    taught = teleprompter.compile(student, teacher=job.teacher, trainset=[example])
    demonstrations = {name: part["demos"] for name, part in taught.dump_state().items() if part["demos"]}
    inputs = {key: str(value) for key, value in example.inputs().items()}
    return Lesson(inputs=inputs, demonstrations=demonstrations) if demonstrations else None


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s|$)", text))


OPTIMIZERS: dict[str, type[Optimizer]] = {
    kind.name: kind
    for kind in (
        LabeledFewShot,
        BootstrapFewShot,
        BootstrapRandomSearch,
        Mipro,
        Simba,
        Gepa,
        Copro,
        AutoCoT,
        KnnFewShot,
        Ensemble,
    )
}


def optimizer(name: str, **settings: Any) -> Optimizer:
    """The optimizer of this name.

    Args:
        name: one of `OPTIMIZERS`.
        settings: those of its class; what is not given has its default.

    Raises:
        QuestreeError: if there is no such optimizer or setting, or a value does not fit; names what there is.
    """
    if name not in OPTIMIZERS:
        raise QuestreeError(
            f"There is no optimizer {name!r}.{_nearest(name, OPTIMIZERS)} There are: {', '.join(OPTIMIZERS)}."
        )
    kind = OPTIMIZERS[name]
    for setting in settings:
        if setting not in kind.model_fields:
            known = ", ".join(f"{key} ({field.default})" for key, field in kind.model_fields.items())
            raise QuestreeError(
                f"{name} has no setting {setting!r}.{_nearest(setting, kind.model_fields)} It has: {known}."
            )
    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise QuestreeError(f"{name}: {first['loc'][0]}={first['input']!r} does not fit: {first['msg']}.") from error


def _nearest(name: str, known: Sequence[str] | dict[str, Any]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
