"""questree programs, questree metrics, questree optimizers"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import options
from .screen import Screen, echo

if TYPE_CHECKING:
    from ..common.registry import Registry


def programs(as_json: options.AsJson = False) -> None:
    """List the programs: ours, and those that installed packages offer."""
    from ..programs import REGISTRY

    _print(REGISTRY, as_json)


def metrics(as_json: options.AsJson = False) -> None:
    """List the metrics that --metric can name."""
    from ..metrics import REGISTRY

    _print(REGISTRY, as_json)


def optimizers(as_json: options.AsJson = False) -> None:
    """List the optimizers that compile with --optimizer."""
    from ..optimize import REGISTRY

    _print(REGISTRY, as_json)


def _print(registry: Registry[Any], as_json: bool) -> None:
    if as_json:
        options.print_json(json.dumps(_rows(registry), ensure_ascii=False, indent=2))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(registry.what, no_wrap=True)
    for heading in ("what it is", "paper"):
        table.add_column(heading, overflow="fold")
    for row in _rows(registry):
        table.add_row(*map(Text, row.values()))
    Screen().print(table)
    echo(f"of your own: package:name, or an entry point of the group {registry.group} (docs/your-own-code.md)")


def _rows(registry: Registry[Any]) -> list[dict[str, str]]:
    """Return a row for each part; one of another package that cannot be imported says why."""
    from ..common.errors import QuestreeError
    from ..common.registry import described

    rows = []
    for name in registry.names():
        try:
            part = registry.known(name)
            line, paper = described(getattr(part, "about", None) or part.__doc__)
        except QuestreeError as error:
            line, paper = str(error), ""
        rows.append({registry.what: name, "what it is": line, "paper": paper})
    return rows
