"""questree compile"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..settings import RunSettings, chosen
from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..optimize import Compiled


def compile(
    settings: RunSettings,
    program: Annotated[str | None, typer.Argument()] = None,
    optimizer: str | None = None,
    optimizer_set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE")] = None,
    train_limit: Annotated[int | None, typer.Option(min=2)] = None,
    teacher: Annotated[str | None, typer.Option(metavar="annotations|PROGRAM")] = None,
    metric: str | None = None,
    register: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    set_: options.ProgramSettings = None,
    details: options.Details = False,
) -> "Compiled":
    """Compile a program: choose its demonstrations or instructions, and score it before and after.

    --split and --limit are of the questions that it is scored on; it is compiled on the training questions. The same
    command goes on where it was interrupted.

    Args:
        program: A program's name. Default: the settings'.
        optimizer: annotated-few-shot, labeled-few-shot, bootstrap-few-shot, bootstrap-random-search, mipro, gepa,
            auto-cot, knn-few-shot, ensemble, or another of `questree list optimizers`. Default: the
            program's own, for most bootstrap-random-search.
        optimizer_set: A setting of the optimizer; repeat it.
        train_limit: At most so many training questions. Default: all.
        teacher: What makes the demonstrations: the annotations of the questions, or a compiled program. Default: the
            program itself.
        metric: Metric by name. Default: the task's; F1 for cover-EM.
        register: Put the program into MLflow's registry under this name.
    """
    from ..experiment import Experiment
    from ..metrics import metric as metric_named
    from ..optimize import Examples
    from ..optimize import compile as compiled_by
    from ..optimize import optimizer as optimizer_named
    from ..programs import REGISTRY
    from .progress import progress_bars
    from .report import print_compiled

    experiment, name = Experiment(settings), program or settings.program
    how_to = options.named_values(optimizer_set, "--optimizer-set")
    chosen_one = optimizer_named(optimizer or REGISTRY.named(name).default_optimizer, **how_to)
    own, task = experiment.task.metric, experiment.task.name
    score = metric_named(metric or {"cover-em": "f1"}.get(own, own))  # long answers reach cover-EM as well
    with progress_bars() as bars, experiment.asking() as how:
        student = experiment.program(name, **options.named_values(set_, "--set"))
        out = experiment.folder("compile", student.name, task, chosen_one.name)
        examples = Examples(
            train=experiment.examples("train", train_limit), dev=experiment.questions_for([student]), task=task
        )
        how |= {"optimizer": chosen_one, "register": register, "out": out, "on_progress": bars.compilation}
        how["teacher"] = experiment.program(teacher) if teacher not in (None, "annotations") else teacher
        compiled = compiled_by(student, examples, score, **how)
    print_compiled(compiled, details=details)
    echo(f"saved in {out / 'program'}" + (f"\ntracked as {compiled.address}" if compiled.address else ""))
    if register:
        echo(f"registered as models:/{register}, its latest version")
    echo(f"its prompts: questree prompts {shlex.quote(f'{out}/program')}")
    echo(f"ask it: {_ask_command(settings, out / 'program', name)}")
    if (gain := compiled.gain).mean < 0:
        lost = f"warning: the compiled program scores lower than before, {gain:+.3f} over {gain.n} questions"
        echo(f"{lost}: keep the program as it was, or compile with more questions or another optimizer", err=True)
    return compiled


def _ask_command(settings: RunSettings, program: Path, compiled: str) -> str:
    """Return the command that asks the compiled program with the parts that it was compiled with."""
    from ..common.secrets import without_secrets

    words = ["questree", "ask", "QUESTION", "--program", str(program)]
    for name in chosen("task seed LM PARTS allow_code"):
        value = getattr(settings, name)
        if value != RunSettings.model_fields[name].default:
            words += [f"--{name.replace('_', '-')}", without_secrets(str(value))]
    if ":" in compiled and settings.allow_code is None:  # code of another package, which a file may not name unasked
        words += ["--allow-code", compiled]
    return shlex.join(words)
