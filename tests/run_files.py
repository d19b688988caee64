"""Files of runs as tests make, read and change them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from questree.evaluation.kept_run import match_run
from questree.evaluation.records import Record
from questree.evaluation.run_file import writing
from questree.lm.episode import EpisodeStep

KEPT = ("run", "questions", "scores", "steps")


def change(folder: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """Change the file of a folder past all that guards it."""
    with closing(sqlite3.connect(folder / "runs.db")) as file, file:
        for statement in statements:
            file.execute(*statement) if isinstance(statement, tuple) else file.executescript(statement)


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query finds in the file of a folder."""
    with closing(sqlite3.connect(folder / "runs.db")) as file:
        return file.execute(query).fetchall()


def kept(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that the file of a folder holds of runs, questions, scores and steps."""
    return {table: rows(folder, f"SELECT * FROM {table}") for table in KEPT}


def keep(
    folder: Path,
    records: Iterable[Record],
    name: str = "",
    steps: Mapping[str, Sequence[EpisodeStep]] = {},
    **about: Any,
) -> Path:
    """Write a run of these records into the file of a folder: an evaluation, or one of a comparison where named."""
    with writing(folder, "comparison" if name else "evaluation") as file:
        run = match_run(file, name, {"program": name} | about)
        for record in records:
            run.append(record, steps.get(record.id))
    return folder
