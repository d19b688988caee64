"""questree attack"""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..settings import RunSettings

NO_SETTINGS = ("defence", "tracking_uri")


class Writer(str, Enum):
    """Who writes what is planted."""

    template = "template"
    lm = "lm"


def attack(
    settings: "RunSettings",
    programs: Annotated[
        list[str], typer.Argument(help="Programs' names, compiled ones' folders, runs:/… or models:/…")
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="poison: passages that argue for a wrong answer; keywords: the same, in another order of words; "
            "injection: orders in genuine passages (task-irrelevant, task-relevant, targeted). Repeat it. "
            "Default: poison."
        ),
    ] = None,
    planted: Annotated[
        list[int] | None, typer.Option(min=1, help="Passages for each question; repeat it. Default: 5.")
    ] = None,
    defence: Annotated[
        list[str] | None, typer.Option(help="none, agreement or reader; repeat it for a row of each. Default: none.")
    ] = None,
    writer: Annotated[Writer, typer.Option(help="Who writes the poison: templates, or the LM.")] = Writer.template,
    credulous: Annotated[
        float | None, typer.Option(help="Of the simulated LM: the share of claims and orders that it falls for.")
    ] = None,
) -> None:
    """Plant passages against each question and count how often the attacker's answer is given. Goes on where it was."""
    from ..experiment import Experiment
    from .report import comparison_bars, print_figures

    with comparison_bars() as on_progress:
        run, folder = Experiment(settings).attack(
            programs,
            kinds=kind or ["poison"],
            planted=planted or [5],
            defences=defence or ["none"],
            writer=writer.value,
            credulous=credulous,
            on_progress=on_progress,
        )
    print_figures([_with_label(line) for line in run.table.lines], simulated=run.simulated)
    typer.echo(f"table: {folder / 'attack.md'}\neach question: questree show {folder}/DEFENCE/ATTACK/PROGRAM")


def _with_label(line: Mapping[str, str]) -> dict[str, str]:
    """The row with all that tells it apart in its first column, which a narrow screen repeats."""
    names = ("program", "attack", "planted", "defence")
    rest = {heading: cell for heading, cell in line.items() if heading not in names}
    return {"program, attack, planted, defence": ", ".join(line[name] for name in names), **rest}
