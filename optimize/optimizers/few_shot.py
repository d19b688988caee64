"""DSPy's teleprompters that choose demonstrations: the settings that we give each, and how it is called."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Any, cast

import dspy
from pydantic import Field

from ...common.errors import QuestreeError
from ...lm.guard import complete_demonstrations
from ...programs import Program
from ...programs.composed import Lesson, Majority, NearestDemonstrations
from ...programs.demonstrations import alternate
from ...programs.states import state_of
from ..demonstrations import demonstrate, handwritten, read_lesson
from .base import Job, Optimizer
from .demonstration_sets import Bootstrap, demonstration_sets
from .scores import Scoring


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
    """A demonstration that was written by hand, and then steps of training questions as annotated. No LM is asked.

    Where too few steps are annotated, more that were written by hand take their place.

    Attributes:
        k: demonstrations of each predictor.
        questions: training questions that are gone through for them.
    """

    name = "annotated-few-shot"
    unused = frozenset({"teacher", "prompt_lm"})
    k: int = Field(default=2, ge=1)
    questions: int = Field(default=60, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Give each predictor what was written for it, then steps of each kind in turn, the shortest first."""
        taught = student.reset_copy()
        read = [read_lesson(one, student.retriever) for one in _by_length(job.trainset)[: self.questions]]
        lessons = [lesson for lesson in read if lesson]
        for predictor in taught.predictors():
            steps = [step for lesson in lessons for step in demonstrate(predictor.signature, lesson)]
            chosen = alternate(sorted(steps, key=lambda step: len(str(step[1]))), lambda step: step[0])
            annotated = [dspy.Example(augmented=True, **fields) for _, fields in chosen]
            written = handwritten(predictor.signature)
            predictor.demos = [*written[:1], *annotated, *written[1:]][: self.k]
        if not any(predictor.demos for predictor in taught.predictors()):
            raise QuestreeError(
                f"Neither annotations nor demonstrations written by hand show a prompt of {student.name}: take "
                "another optimizer, such as bootstrap-few-shot."
            )
        return taught


def _by_length(examples: Sequence[dspy.Example]) -> list[dspy.Example]:
    """Return the examples so that shorter and longer reasoning alternate; one-step questions show no next step."""

    def steps(example: dspy.Example) -> int:
        return len(getattr(example, "annotated_steps", None) or [])

    return alternate([one for one in examples if steps(one) != 1] or examples, steps)


class Demonstrating(Optimizer):
    """Settings that all optimizers of demonstrations share; Tree of Reviews and BlendFilter have three demonstrations.

    Attributes:
        max_bootstrapped_demos: demonstrations of each predictor, from training questions that were answered well.
        max_labeled_demos: how many of a predictor's demonstrations may be filled up with training questions as
            they are.
    """

    max_bootstrapped_demos: int = Field(default=3, ge=0)
    max_labeled_demos: int = Field(default=3, ge=0)

    def counts(self) -> dict[str, int]:
        """Return both numbers under the names that DSPy gives them."""
        return self.model_dump(include={"max_bootstrapped_demos", "max_labeled_demos"})


class BootstrapFewShot(Demonstrating):
    """The steps of training questions that were answered well (DSPy, Khattab et al., ICLR 2024, arXiv 2310.03714)."""

    name = "bootstrap-few-shot"
    unused = frozenset({"prompt_lm"})
    max_rounds: int = Field(default=1, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Call `Bootstrap`, which is DSPy's."""
        teleprompter = Bootstrap(metric=job.verdicts, max_rounds=self.max_rounds, **self.counts())
        return teleprompter.compile(student, teacher=job.teacher, trainset=job.trainset)


class BootstrapRandomSearch(Demonstrating):
    """Bootstraps from many shufflings of the training questions, and keeps the best on the validation questions.

    Attributes:
        stop_at_score: mean score on the validation questions, from 0 to 1, at which the search ends.
    """

    name = "bootstrap-random-search"
    unused = frozenset({"prompt_lm"})
    compares = True
    max_bootstrapped_demos: int = Field(default=3, ge=1)  # DSPy draws a number from 1 on
    max_rounds: int = Field(default=1, ge=1)
    candidates: int = Field(default=8, ge=1)
    stop_at_score: float | None = Field(default=None, ge=0, le=1)

    def make(self, student: Program, job: Job) -> Any:
        """Return the best of the candidates."""
        return self.search(student, job)[0][1]

    def search(self, student: Program, job: Job) -> list[tuple[float, Program]]:
        """Return each candidate with its score, the best first, as ``dspy.BootstrapFewShotWithRandomSearch`` does.

        DSPy's prints, and takes no `Bootstrap` and no `Scoring`.
        """

        def bootstrap(trainset: list[dspy.Example], size: int) -> Program:
            counts = {"max_bootstrapped_demos": size, "max_labeled_demos": self.max_labeled_demos}
            teleprompter = Bootstrap(metric=job.verdicts, max_rounds=self.max_rounds, **counts)
            return cast("Program", teleprompter.compile(student, teacher=job.teacher, trainset=trainset))

        def draw(seed: int, trainset: list[dspy.Example]) -> int:
            Random(seed).shuffle(trainset)
            return Random(seed).randint(1, self.max_bootstrapped_demos)

        most, rows = self.max_bootstrapped_demos, self.max_labeled_demos
        sets = demonstration_sets(student, job.trainset, bootstrap, draw, bootstrapped=most, labeled=rows)
        score, scored = Scoring(devset=job.valset, metric=job.verdicts), list[tuple[float, Program]]()
        enough = None if self.stop_at_score is None else round(100 * self.stop_at_score, 2)  # as DSPy rounds a score
        for program in islice(sets, self.candidates + 3):
            scored.append((score(program).score, program))
            if enough is not None and scored[-1][0] >= enough:
                break
        return sorted(scored, key=lambda candidate: candidate[0], reverse=True)


class Ensemble(BootstrapRandomSearch):
    """The best candidates of a random search, and the answer that most of them give.

    Attributes:
        size: candidates that vote.
    """

    name = "ensemble"
    size: int = Field(default=3, ge=2)

    def make(self, student: Program, job: Job) -> Any:
        """Join the best candidates of a search whose prompts differ: two that are the same would outvote the third."""
        members: list[Program] = []
        for _, candidate in self.search(student, job):
            for predictor in candidate.predictors():
                predictor.demos = complete_demonstrations(predictor)
            if state_of(candidate) not in map(state_of, members):
                members.append(candidate)
        return Majority(members[: self.size])


class KnnFewShot(Optimizer):
    """The demonstrations of the k nearest training questions, chosen anew for each question."""

    name = "knn-few-shot"
    unused = frozenset({"prompt_lm"})
    k: int = Field(default=3, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Bootstrap each training question once, with `Bootstrap`."""
        lessons = [lesson for example in job.trainset if (lesson := _lesson(student, example, job)) is not None]
        if not lessons:
            raise QuestreeError(
                f"No training question of {len(job.trainset)} was answered well, so there is nothing to learn from: "
                "give more of them, a better teacher, or a milder metric."
            )
        return NearestDemonstrations(student.reset_copy(), lessons, self.k)


def _lesson(student: Program, example: dspy.Example, job: Job) -> Lesson | None:
    """Return what one training question teaches, or None if it was not answered well."""
    teleprompter = Bootstrap(metric=job.verdicts, max_bootstrapped_demos=1, max_labeled_demos=0)
    taught = teleprompter.compile(student, teacher=job.teacher, trainset=[example])
    demonstrations = {name: part["demos"] for name, part in taught.dump_state().items() if part["demos"]}
    inputs = {key: str(value) for key, value in example.inputs().items()}
    return Lesson(inputs=inputs, demonstrations=demonstrations) if demonstrations else None
