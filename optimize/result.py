"""The questions of a compilation, and its result."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dspy

from ..common.errors import QuestreeError
from ..common.text import in_page
from ..evaluation.evaluation import Evaluation
from ..evaluation.leak import refuse_leak
from ..evaluation.records import question_id
from ..evaluation.run import Progress
from ..lm.spent import Spent
from ..metrics import Interval
from ..programs import Program, build_kind
from ..programs.states import members_of
from .candidates import Candidate


@dataclass(frozen=True)
class Examples:
    """What a program is compiled and scored on. No question may stand in two of them.

    Attributes:
        train: demonstrations come from these.
        dev: the scores before and after are of these; an optimizer never sees them.
        val: candidates are compared on these. If there are none, every other question of ``train`` is taken, and
            gives no demonstrations.
        task: its name.
    """

    train: Sequence[dspy.Example]
    dev: Sequence[dspy.Example]
    val: Sequence[dspy.Example] = ()
    task: str = ""

    def split(self, seed: int, *, compares: bool) -> tuple[list[dspy.Example], list[dspy.Example]]:
        """Return training and validation questions, shuffled; all are for training if nothing is to be compared.

        Raises:
            QuestreeError: if there are too few, or a question stands in two of the three, by its id or its words.
        """
        train, val = list(self.train), list(self.val)
        random.Random(seed).shuffle(train)
        if not compares:
            train, val = train + val, []
        elif not val:
            train, val = train[::2], train[1::2]
        if not train or not self.dev or (compares and not val):
            raise QuestreeError(
                f"Compilation needs training, validation and dev questions; {self.task or 'the task'} gives "
                f"{len(train)}, {len(val)} and {len(self.dev)}."
            )
        for seen, scored, uses in (
            ([*train, *val], self.dev, "compiling and for scoring"),
            (self.train, self.val, "demonstrations and for comparing candidates"),
        ):
            refuse_leak(map(question_id, seen), map(question_id, scored), uses)
            refuse_leak((one.question for one in seen), (one.question for one in scored), uses)
        return train, val


@dataclass(frozen=True)
class Compilation:
    """What an optimizer made, and what it cost.

    Attributes:
        program: answers as the one that was compiled.
        candidates: what was tried, in the order in which it was scored.
        spent: every LM call between the two scores.
        paid: the same with the calls of earlier attempts, which were stopped or killed.
        seconds: between the two scores.
        judged: predictions that the metric judged: ``asked``, ``accepted``, and failed ones by cause.
        questions: how many there were to learn from, ``train``, to compare candidates, ``val``, and to score, ``dev``.
    """

    program: Program
    candidates: tuple[Candidate, ...]
    spent: Spent
    paid: Spent
    seconds: float
    judged: Mapping[str, int]
    questions: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> str:
        """Return in words what differs from the program before: instructions, demonstrations, members."""
        return compiled_parts(self.program) or "nothing; more questions or another optimizer may find more"


def compiled_parts(program: Program) -> str:
    """Return in words what a program has that its code has not; empty if that is nothing."""
    members, rewritten = members_of(program), set()
    demos = len(getattr(program, "lessons", ()))  # of a program that chooses them by question
    for member in members:
        before = dict(build_kind(type(member), member.settings.model_dump()).named_predictors())
        for name, one in member.named_predictors():
            demos += len(one.demos)
            if name in before and one.signature.instructions != before[name].signature.instructions:
                rewritten.add(name)
    said = [
        f"{len(members)} programs that vote" if len(members) > 1 else "",
        f"instructions of {len(rewritten)} of {len(members[0].predictors())} prompts" if rewritten else "",
        f"{demos} demonstration{'' if demos == 1 else 's'}" if demos else "",
    ]
    return ", ".join(filter(None, said))


@dataclass(frozen=True)
class Compiled:
    """A compiled program, and what is known of it.

    Attributes:
        compilation: what the optimizer made.
        before: the dev questions, answered by the program as it came.
        after: the same, answered by the compiled one.
        artifact: the folder that it is saved in; None if nothing was to be kept.
        address: of the tracked artifact, for `load`; None if nothing was tracked.
    """

    compilation: Compilation
    before: Evaluation
    after: Evaluation
    artifact: Path | None = None
    address: str | None = None

    @property
    def program(self) -> Program:
        """Return the compiled program."""
        return self.compilation.program

    @property
    def gain(self) -> Interval:
        """Return the score after less the score before, question by question, with its 95% interval."""
        return self.after.less(self.before)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the scores, their difference, and the program; everything in it is escaped."""
        lines = [f"before: {self.before}", f"after: {self.after}", f"gain: {self.gain}"]
        return "".join(f"<p>{in_page(line)}</p>" for line in lines) + self.program._repr_html_()


@dataclass(frozen=True)
class CompileProgress:
    """How far a compilation is.

    Attributes:
        stage: ``before``, ``compile`` or ``after``.
        questions: how far the scoring is, in the stages ``before`` and ``after``.
        candidate: the one that was scored last, in the stage ``compile``.
    """

    stage: str
    questions: Progress | None = None
    candidate: Candidate | None = None
