"""questree evaluate"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings


def evaluate(
    settings: "RunSettings",
    program: Annotated[
        str | None,
        typer.Argument(
            help="A program's name, or a compiled one's folder, runs:/…, models:/… or hf://…. Default: searchain"
        ),
    ] = None,
    metric: options.Metrics = None,
    judge: options.Judge = None,
    set_: options.ProgramSettings = None,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="Ask everything so often, with an LM that samples (--temperature)."),
    ] = 1,
    details: options.Details = False,
    as_json: options.AsJson = False,
) -> None:
    """Ask a program every question of a split and score it.

    The same command goes on where it was interrupted.
    """
    from ..experiment import Experiment
    from .report import comparison_bars, print_agreement, print_evaluations, print_repeats, progress_bar

    program = program or settings.program
    if repeats > 1:
        with options.clear_stdout(as_json), comparison_bars() as on_repeat:
            given = options.named_values(set_, "--set")
            repeated, folder = Experiment(settings).repeat(
                program, repeats, metrics=metric, judge=judge, on_progress=on_repeat, **given
            )
        if as_json:
            options.print_json(repeated.as_json())
            return
        print_repeats(repeated)
        print_agreement(repeated.runs)
        echo(f"each question: questree show {quote(f'{folder}/repeat-1')}")
        return
    with options.clear_stdout(as_json), progress_bar() as on_progress:
        evaluation, folder = Experiment(settings).evaluate(
            program, metrics=metric, judge=judge, on_progress=on_progress, **options.named_values(set_, "--set")
        )
    if as_json:
        from ..evaluation.stored_runs import stored_runs

        options.print_json(stored_runs([folder])[0].as_json())
        return
    print_evaluations({program: evaluation}, details=details)
    print_agreement([evaluation])
    echo(f"each question: questree show {quote(str(folder))}")
