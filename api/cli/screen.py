"""The one door to the screen: nothing that is printed moves the cursor, sets a colour or turns writing around.

Names of folders, metrics and runs may be a stranger's as much as texts are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

SIMULATED = "simulated LM: these numbers say nothing about methods"


class Screen(Console):
    """A console that takes all text as it stands: no markup, no names of emoji, no control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of what is printed, made printable; colours stand beside their texts."""
        from ..common.text import printable  # not before it is needed: pydantic takes a while

        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line as it stands, without breaking it."""
    from ..common.text import printable  # as above

    typer.echo(printable(text), err=err)


def put(text: str, out: Path | None) -> None:
    """Write a text to a file, or print it."""
    from ..common.text import printable

    if out is None:
        echo(text)
    else:
        out.write_text(f"{printable(text)}\n", encoding="utf-8")


def print_json(value: Any) -> None:
    """Print JSON that is written already, or dataclasses, models, dicts and lists as JSON; NaN becomes null."""
    from pydantic_core import to_json

    from ..common.text import printable_json

    echo(printable_json(value if isinstance(value, str) else to_json(value, indent=2).decode()))


def clear_stdout(wanted: bool) -> AbstractContextManager[Any]:
    """Return a context in which what libraries print goes to stderr (MLflow names its server's pages), if wanted."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()


def waiting(what: str) -> AbstractContextManager[object]:
    """Show what is being done while the block runs, on a terminal; it disappears with its end."""
    return Screen(stderr=True).status(f"{what} …")


def print_figures(lines: Sequence[Mapping[str, str]], *, simulated: bool | str = False) -> None:
    """Print texts by heading, one line for each; in several tables where the screen is too narrow for one."""
    console = Screen()
    widths = {heading: max(map(len, _unbroken(heading, lines))) for heading in lines[0]}
    for headings in _fitting(widths, console.width, _telling_apart(lines)):
        columns = {heading: {"justify": "left", "width": widths[heading]} for heading in headings}
        for heading in headings[1:]:
            columns[heading]["justify"] = "right"
        console.print(table_of([{name: line[name] for name in headings} for line in lines], columns, simulated))


def table_of(
    lines: Sequence[Mapping[str, str]], columns: Mapping[str, Any], simulated: bool | str = False, **style: Any
) -> Any:
    """Return a table of texts by heading; its title says so where an LM was simulated.

    Args:
        simulated: whether the figures are a simulated LM's; or what is said of them above the table.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title=SIMULATED if simulated is True else simulated or None, box=SIMPLE_HEAD, **style)
    for heading, column in columns.items():
        table.add_column(heading, **{"overflow": "fold", **column})
    for line in lines:
        table.add_row(*(Text(line.get(heading, "")) for heading in columns))
    return table


def _telling_apart(lines: Sequence[Mapping[str, str]]) -> int:
    """Return how many of the first columns tell the lines apart; one if no number of them does."""
    cells = [tuple(line.values()) for line in lines]
    counts = range(1, len(lines[0]))
    return next((count for count in counts if len({one[:count] for one in cells}) == len(cells)), 1)


def _fitting(widths: Mapping[str, int], screen: int, repeated: int) -> Iterator[list[str]]:
    """Yield the headings of each table: all begin with the first ones, and none is wider than the screen."""
    first, others = list(widths)[:repeated], list(widths)[repeated:]
    chosen = list(first)
    for heading in others:
        if len(chosen) > repeated and sum(widths[one] + 3 for one in [*chosen, heading]) + 3 > screen:
            yield chosen
            chosen = list(first)
        chosen.append(heading)
    yield chosen


def _unbroken(heading: str, lines: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what should not be broken: the words of the heading, and the cells."""
    return [*heading.split(), *(line[heading] for line in lines), ""]
