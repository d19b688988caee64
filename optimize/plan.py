"""The arguments of `compile`: checked before anything is paid, and stored, so that only the same are resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dspy

from ..common.errors import QuestreeError
from ..evaluation import RunPolicy, Tracking
from ..evaluation.identity import digest, lm_facts, run_identity, versions
from ..evaluation.kept_run import check_same
from ..evaluation.record_scores import ScoreFunction, metric_name
from ..evaluation.records import check_example, plain, question_id
from ..evaluation.run_file import WritableFile
from ..programs import Program
from ..programs.composed import Composed
from ..programs.program import checked_program
from .optimizers import OPTIMIZERS, Optimizer
from .optimizers import optimizer as optimizer_named
from .result import CompileProgress, Examples

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "examples": ((Examples,), "questree.optimize.Examples(train=..., dev=...)"),
    "optimizer": ((Optimizer, str), f"one of {', '.join(OPTIMIZERS)}, or questree.optimize.optimizer(NAME, ...)"),
    "teacher": ((Program, str), "a program (questree.load(FOLDER, ...) for a saved one), or 'annotations'"),
    "prompt_lm": ((dspy.BaseLM,), "dspy.LM(...)"),
    "policy": ((RunPolicy,), "questree.evaluation.RunPolicy(max_calls=...)"),
    "tracking": ((Tracking,), "questree.evaluation.Tracking(ADDRESS)"),
}


@dataclass(frozen=True)
class Plan:
    """A compilation as it was asked for; see `compile`."""

    program: Program
    examples: Examples
    metric: ScoreFunction
    optimizer: Optimizer
    teacher: Program | Literal["annotations"] | None
    prompt_lm: dspy.BaseLM | None
    seed: int
    policy: RunPolicy
    out: Path | None
    tell: Callable[[CompileProgress], None] | None
    register: str | None = None

    def claim(self, file: WritableFile) -> None:
        """Write into a file what the compilation is about; refuse the file of another compilation."""
        facts = json.loads(json.dumps(self.facts()))
        if (there := file.fact("about")) is None:
            file.set_fact("about", {**facts, "versions": versions()})
        else:
            writer = there.pop("versions", {}).get("questree")
            check_same(str(file.path.parent), there, facts, writer)

    def facts(self) -> dict[str, Any]:
        """Return what the compilation is about: what is tracked, and what must be the same to resume it."""
        teacher, parts = self.teacher, {name: getattr(self.examples, name) for name in ("train", "val", "dev")}
        return {
            **run_identity(self.program, task=self.examples.task),
            "metrics": [metric_name(self.metric)],
            "optimizer": {"name": self.optimizer.name, **self.optimizer.model_dump(mode="json")},
            "teacher": teacher.name if isinstance(teacher, Program) else teacher,
            "settings and state of the teacher": digest(run_identity(teacher, task=""))
            if isinstance(teacher, Program)
            else None,
            "prompt lm": None if self.prompt_lm is None else lm_facts(self.prompt_lm),
            "seed": self.seed,
            "questions": {
                name: {"n": len(part), "digest": digest([question_id(example) for example in part])}
                for name, part in parts.items()
            },
            # the program depends on their whole text; dev questions that are corrected are only scored again
            "training questions": digest([plain(dict(one)) for one in (*parts["train"], *parts["val"])]),
        }


def checked(name: str, given: Any) -> Any:
    """Return the value given for a parameter; refuse it if it is neither of a kind that is allowed nor None."""
    kinds, give = _KINDS[name]
    if given is not None and not isinstance(given, kinds):
        raise QuestreeError(f"{name}={given!r:.60} is of the type {type(given).__name__}; give {give}.")
    return given


def checked_student(given: Any) -> Program:
    """Return the program that is to be compiled."""
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


def checked_examples(given: Any) -> Examples:
    """Return the examples as lists."""
    parts: dict[str, list[dspy.Example]] = {}
    for name in ("train", "dev", "val"):
        part = getattr(checked("examples", given), name, None)
        if not isinstance(part, Sequence) or not all(isinstance(one, dspy.Example) for one in part):
            raise QuestreeError(
                f"{name}={part!r:.60} is no list of dspy.Example; give {_KINDS['examples'][1]} with such lists, for "
                f"example task.examples({name!r})."
            )
        parts[name] = [*part]
        for one in part:
            check_example(one)
    return Examples(**parts, task=given.task)


def checked_optimizer(given: Any, program: Program) -> Optimizer:
    """Return the optimizer, by its name or as it is; the program's own default where None."""
    found = checked("optimizer", given)
    return found if isinstance(found, Optimizer) else optimizer_named(found or program.default_optimizer)


def checked_teacher(given: Any, student: Program) -> Program | Literal["annotations"] | None:
    """Return the teacher."""
    if isinstance(given, str) and given != "annotations":
        raise QuestreeError(f"teacher={given!r} is no teacher; give {_KINDS['teacher'][1]}.")
    if isinstance(given, Program) and (isinstance(given, Composed) or _prompts(given) != _prompts(student)):
        raise QuestreeError(
            f"The teacher, a {given.name}, has other prompts than this {student.name}, or is made of several programs: "
            f"its steps are no demonstrations. Give a single {student.name}, whatever its instructions and LM."
        )
    teacher: Program | Literal["annotations"] | None = checked("teacher", given)
    return teacher


def _prompts(program: Program) -> dict[str, list[str]]:
    """Return the fields of each predictor by its name."""
    return {name: [*predictor.signature.fields] for name, predictor in program.named_predictors()}


def check_asked(optimizer: Optimizer, **parts: Any) -> None:
    """Raise a `QuestreeError` if a part is given, such as a teacher, that the optimizer does not use."""
    for name in sorted(name for name, part in parts.items() if part is not None and name in optimizer.unused):
        others = ", ".join(other for other, kind in OPTIMIZERS.items() if name not in kind.unused)
        raise QuestreeError(f"{optimizer.name} asks no {name}: leave it out, or take one that does: {others}.")
