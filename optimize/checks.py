"""What `compile` is given: each thing of the wrong kind is refused, with what to give, before anything is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import dspy

from ..common.errors import QuestreeError
from ..evaluation.records import check_example
from ..evaluation.tracking import Tracking
from ..lm.policy import RunPolicy
from ..programs import Program
from ..programs.composed import Composed
from ..programs.program import checked_program
from .compiled import Examples
from .optimizers import OPTIMIZERS, Optimizer
from .optimizers import optimizer as optimizer_named


def student(given: Any) -> Program:
    """Return the program that is to be compiled.

    Raises:
        QuestreeError: if it is none, is made of compiled ones, or has an LM of its own: it would be asked with another
            before and after.
    """
    program = checked_program(given)
    if isinstance(program, Composed):
        raise QuestreeError(
            f"This {program.name} is made of compiled programs ({program.form}), and its predictors are theirs: "
            "compile the program that they were made of, or one of its `members`."
        )
    configured = (None, dspy.settings.lm)
    if own := [name for name, predictor in program.named_predictors() if predictor.lm not in configured]:
        raise QuestreeError(
            f"{own[0]} has an LM of its own (`set_lm`), and compiling asks the configured one: configure that LM, "
            "dspy.configure(lm=...), and set none on the program, program.set_lm(None)."
        )
    return program


def examples(given: Any) -> Examples:
    """Return the examples as lists.

    Raises:
        QuestreeError: if they are none, or a question of theirs cannot be asked.
    """
    if not isinstance(given, Examples):
        raise QuestreeError(
            f"The examples are of the type {type(given).__name__}; give those to compile on and those to score on "
            "apart: questree.optimize.Examples(train=..., dev=...)."
        )
    train, dev, val = (_questions(name, getattr(given, name)) for name in ("train", "dev", "val"))
    return replace(given, train=train, dev=dev, val=val)


def _questions(part: str, given: Any) -> Sequence[dspy.Example]:
    try:
        questions = list(given)
    except TypeError:
        questions = [given]
    for one in questions:
        if not isinstance(one, dspy.Example):
            raise QuestreeError(
                f"{part}={given!r:.60} holds something of the type {type(one).__name__}; give a list of dspy.Example, "
                f"such as task.examples({part!r})."
            )
        check_example(one)
    return questions


def optimizer(given: Any, program: Program) -> Optimizer:
    """Return the optimizer, by its name or as it is; the program's own default where None.

    Raises:
        QuestreeError: if it is another's, or there is none of the name.
    """
    if isinstance(given, Optimizer):
        return given
    if given is None or isinstance(given, str):
        return optimizer_named(given or program.default_optimizer)
    raise QuestreeError(
        f"{given!r:.60} is no optimizer of ours; give a name ({', '.join(OPTIMIZERS)}), or one with settings: "
        "questree.optimize.optimizer(NAME, ...)."
    )


def teacher(given: Any, student: Program) -> Program | Literal["annotations"] | None:
    """Return the teacher.

    Raises:
        QuestreeError: if it is neither a program, nor "annotations", nor None; or its prompts are not the student's.
    """
    if isinstance(given, Program) and (isinstance(given, Composed) or _prompts(given) != _prompts(student)):
        kind = f"{given.name} made of compiled ones ({given.form})" if isinstance(given, Composed) else given.name
        raise QuestreeError(
            f"The teacher, a {kind}, has other prompts than this {student.name}: its steps are no demonstrations of "
            f"it. Give a single {student.name} as the teacher, with whichever instructions, demonstrations and LM."
        )
    if given is None or isinstance(given, Program) or given == "annotations":
        teacher: Program | Literal["annotations"] | None = given
        return teacher
    raise QuestreeError(
        f"teacher={given!r:.60} is no teacher; give a program (questree.load(FOLDER, ...) for a saved one), or "
        "'annotations'."
    )


def _prompts(program: Program) -> dict[str, list[str]]:
    """Return the fields of each predictor by its name."""
    return {name: [*predictor.signature.fields] for name, predictor in program.named_predictors()}


def prompt_lm(given: Any) -> dspy.BaseLM | None:
    """Return the LM that writes instructions.

    Raises:
        QuestreeError: if it is no LM, such as its name.
    """
    if given is None or isinstance(given, dspy.BaseLM):
        return given
    raise QuestreeError(f"prompt_lm={given!r:.60} is no LM; give dspy.LM(...).")


def asked_by(optimizer: Optimizer, **parts: Any) -> None:
    """Check that the optimizer asks the parts that are given for it.

    Raises:
        QuestreeError: if it would leave one of them aside.
    """
    aside = optimizer.leaves_aside()
    for name in sorted(name for name, part in parts.items() if part is not None and name in aside):
        others = ", ".join(other for other, kind in OPTIMIZERS.items() if name not in kind.unused)
        settings = "" if name in optimizer.unused else " with these settings"
        raise QuestreeError(
            f"{optimizer.name} asks no {name}{settings}: leave it out, or take one that does: {others}."
        )


def policy(given: Any) -> RunPolicy:
    """Return the policy; the default where None.

    Raises:
        QuestreeError: if it is none, such as a dict.
    """
    if given is None or isinstance(given, RunPolicy):
        return given or RunPolicy()
    raise QuestreeError(f"policy={given!r:.60} is no policy; give questree.evaluation.RunPolicy(max_calls=...).")


def tracking(given: Any) -> Tracking:
    """Return the tracking.

    Raises:
        QuestreeError: if it is an address, or something else.
    """
    if isinstance(given, Tracking):
        return given
    raise QuestreeError(f"tracking={given!r:.60} is no tracking; give questree.evaluation.Tracking(ADDRESS).")
