"""The one door to the screen: nothing that is printed moves the cursor, sets a colour or turns writing around.

Names of folders, metrics and runs may be a stranger's as much as texts are.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


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


def waiting(what: str) -> AbstractContextManager[object]:
    """Show what is being done while the block runs, on a terminal; it disappears with its end."""
    return Screen(stderr=True).status(f"{what} …")
