"""Bytes changed in what is kept on disk: how many were changed, and how many of the changes were noticed and named."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from questree.common.errors import QuestreeError
from questree.optimize import load
from questree.retrieval import load_index


@dataclass
class Corrupted:
    """Changes by file.

    Attributes:
        tried: single bytes changed, one at a time.
        noticed: of them, those after which loading refused, and named the folder.
    """

    tried: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)

    @property
    def missed(self) -> dict[str, int]:
        """Changes that went unnoticed, by file."""
        return {name: count - self.noticed[name] for name, count in self.tried.items() if count > self.noticed[name]}


def corrupt_artifact(folder: Path, cases: int, seed: int = 0, **parts: Any) -> Corrupted:
    """Change bytes of every file of a saved program; white space between JSON's tokens is left out, as it says nothing.

    Args:
        folder: of the program; as it was when this returns.
        cases: bytes of each file.
        seed: of the bytes.
        parts: as `questree.optimize.load` takes them.
    """
    return corrupt(folder, cases, seed, lambda: load(folder, **parts))


def corrupt_index(folder: Path, cases: int, seed: int = 0) -> Corrupted:
    """Change bytes of every file of an index, as `corrupt_artifact` does."""
    return corrupt(folder, cases, seed, lambda: load_index(folder))


def corrupt(folder: Path, cases: int, seed: int, reload: Callable[[], object]) -> Corrupted:
    """Change bytes of every file of a folder, one at a time, and load it each time."""
    draw, found = random.Random(seed), Corrupted()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = file.relative_to(folder).as_posix(), file.read_bytes()
        for position in (draw.randrange(len(content)) for _ in range(cases if content else 0)):
            old, new = content[position], draw.choice([byte for byte in range(256) if byte != content[position]])
            if file.suffix == ".json" and bytes([old]).isspace() and bytes([new]).isspace():
                continue
            file.write_bytes(content[:position] + bytes([new]) + content[position + 1 :])
            found.tried[name] += 1
            found.noticed[name] += _refuses(reload, folder)
        file.write_bytes(content)
    return found


def _refuses(reload: Callable[[], object], folder: Path) -> bool:
    try:
        reload()
    except QuestreeError as error:
        return str(folder) in str(error)
    return False
