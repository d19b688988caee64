"""questree compile"""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from pathlib import Path

    from ..settings import RunSettings


def compile(
    settings: "RunSettings",
    program: Annotated[str | None, typer.Argument(help="A program's name. Default: searchain.")] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            help="annotated-few-shot, labeled-few-shot, bootstrap-few-shot, bootstrap-random-search, mipro, simba, "
            "gepa, copro, auto-cot, knn-few-shot, ensemble, bootstrap-finetune, better-together, or another of "
            "`questree optimizers`. Default: the program's own, for most bootstrap-random-search.",
            show_default=False,
        ),
    ] = None,
    optimizer_set: Annotated[
        list[str] | None,
        typer.Option("--optimizer-set", metavar="NAME=VALUE", help="A setting of the optimizer; repeat it."),
    ] = None,
    train_limit: Annotated[
        int | None, typer.Option(min=2, help="At most so many training questions. Default: all.")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="annotations|PROGRAM",
            help="What makes the demonstrations: the annotations of the questions, or a compiled program. "
            "Default: the program itself.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Metric to compile for, by name. Default: the task's.")] = None,
    register: Annotated[
        str | None, typer.Option(metavar="NAME", help="Put the program into MLflow's registry under this name.")
    ] = None,
    set_: options.ProgramSettings = None,
    details: options.Details = False,
) -> None:
    """Compile a program: choose its demonstrations or instructions, and score it before and after.

    --split and --limit are of the questions that it is scored on; it is compiled on the training questions. The same
    command goes on where it was interrupted.
    """
    from ..experiment import Experiment
    from .report import compile_bars, print_compiled

    program = program or settings.program
    with compile_bars() as on_progress:
        compiled, folder = Experiment(settings).compile(
            program,
            optimizer=optimizer,
            optimizer_settings=options.named_values(optimizer_set, "--optimizer-set"),
            train_limit=train_limit,
            metric=metric,
            teacher=teacher,
            register=register,
            on_progress=on_progress,
            **options.named_values(set_, "--set"),
        )
    print_compiled(compiled, details=details)
    echo(f"saved in {folder / 'program'}" + (f"\ntracked as {compiled.address}" if compiled.address else ""))
    if register:
        echo(f"registered as models:/{register}, its latest version")
    if compiled.compilation.lm is not None:  # a saved program names no LM to ask
        settings = settings.model_copy(update={"lm": compiled.compilation.lm.model})
    echo(f"its prompts: questree prompts {shlex.quote(f'{folder}/program')}")
    echo(f"ask it: {_ask_command(settings, folder / 'program', program)}")


def _ask_command(settings: "RunSettings", program: "Path", compiled: str) -> str:
    """Return the command that asks the compiled program with the parts that it was compiled with."""
    from ..common.secrets import without_secrets
    from .ask import SETTINGS

    words = ["questree", "ask", "QUESTION", "--program", str(program)]
    for name in (name for name in SETTINGS if name not in ("allow_changed_signatures", "tracking_uri", "limits")):
        value = getattr(settings, name)
        if value != type(settings).model_fields[name].default:
            words += [f"--{name.replace('_', '-')}", without_secrets(str(value))]
    if ":" in compiled and settings.allow_code is None:  # code of another package, which a file may not name unasked
        words += ["--allow-code", compiled]
    return shlex.join(words)
