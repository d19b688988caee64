"""The names of programs that are shown together; their folders have the same names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from ...programs import Program
from ..identity import digest, state_digest
from ..run_file import holder, reading


def of_compiled(program: Program, out: Path, taken: Container[str]) -> str:
    """Return the name of a compiled program: that of its run in a folder, if it has one, else ``searchain-compiled``.

    Where another compiled program has that name, a digest tells the two apart: ``searchain-compiled-1f0c73ab``.
    ``taken`` are names that others have.
    """
    label = f"{program.name}-compiled"
    own = {"settings": program.settings.model_dump(mode="json"), "compiled state": state_digest(program)}
    beside = dict[str, Any]()
    if (path := holder(out)) is not None:
        with reading(path) as file:
            found = [(name.rpartition("/")[2], about) for name, about in file.rows("SELECT name, about FROM run")]
            beside = {name: file.value(about) for name, about in found if name.startswith(label)}
    same = [name for name, facts in beside.items() if all(facts.get(key) == own[key] for key in own)]
    free = [] if label in beside else [label]
    return next((name for name in [*same, *free] if name not in taken), f"{label}-{digest(own)[:8]}")


def told_apart(runs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a unique name for each run: where several share a name, the folder stands before it.

    Args:
        runs: the name of each, and of the folder or capsule that it is in with others.
    """
    found, names = list(runs), list[str]()
    often = Counter(name for name, _ in found)
    for name, part_of in found:
        names.append(unused(f"{part_of}/{name}" if part_of and often[name] > 1 else name, names))
    return names


def unused(label: str, taken: Container[str]) -> str:
    """Return the name, with a number if another has it."""
    numbered = (f"{label}-{number}" for number in range(2, 1000))
    return next(name for name in [label, *numbered] if name not in taken)
