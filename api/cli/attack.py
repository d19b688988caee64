"""questree attack"""

from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import options
from .screen import echo

if TYPE_CHECKING:
    from ..settings import RunSettings

NO_SETTINGS = ("defence", "rerank", "tracking_uri", "on", "workers")


def attack(
    settings: "RunSettings",
    programs: Annotated[
        list[str], typer.Argument(help="Programs' names, or compiled ones' folders, runs:/…, models:/… or hf://…")
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="poison: passages that argue for a wrong answer; keywords: the same, in another order of words; "
            "injection: orders in genuine passages (task-irrelevant, task-relevant, targeted). Repeat it for several. "
            "Default: poison."
        ),
    ] = None,
    planted: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Passages to plant for each question; repeat it for several numbers. Default: 5."),
    ] = None,
    defence: Annotated[
        list[str] | None, typer.Option(help="none, agreement or reader; repeat it for a row of each. Default: none.")
    ] = None,
    writer: Annotated[
        Literal["template", "lm"], typer.Option(help="Who writes the poison: templates, or the LM.")
    ] = "template",
    credulous: Annotated[
        float | None,
        typer.Option(
            help="For the simulated LM: the share (0 to 1) of claims and orders that it falls for. Default: its own."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Plant passages against each question and count how often the attacker's answer is given.

    The same command goes on where it was interrupted.
    """
    from ..experiment import Experiment
    from .report import comparison_bars, print_figures

    with options.clear_stdout(as_json), comparison_bars() as on_progress:
        run, folder = Experiment(settings).attack(
            programs,
            kinds=kind or ["poison"],
            planted=planted or [5],
            defences=defence or ["none"],
            writer=writer,
            credulous=credulous,
            on_progress=on_progress,
        )
    if as_json:
        options.print_json(run.files()["attack.json"])
    else:
        print_figures([_with_label(line) for line in run.table.lines], simulated=run.simulated)
        echo(f"table: {folder / 'attack.md'}\neach question: questree show {quote(f'{folder}/DEFENCE/ATTACK/PROGRAM')}")
    if run.stopped:
        from ..common.errors import QuestreeError

        raise QuestreeError(run.stopped)


def _with_label(line: Mapping[str, str]) -> dict[str, str]:
    """Return the row with all that tells it apart in its first column, which a narrow screen repeats."""
    names = ("program", "attack", "planted", "defence")
    rest = {heading: cell for heading, cell in line.items() if heading not in names}
    return {"program, attack, planted, defence": ", ".join(line[name] for name in names), **rest}
