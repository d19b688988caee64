"""Published rows from the hub, through `datasets`, at a pinned revision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..common.errors import QuestreeError
from .task import SPLITS, Split
from .tasks import KnownTask, Row


def hub_rows(task: KnownTask) -> Iterator[tuple[Split, int, Row]]:
    """The rows of every split that has answers, test first, each with its number in the split from 1.

    Raises:
        QuestreeError: the hub cannot be reached, has no such repository or revision, or other columns.
    """
    import datasets

    hub = task.hub
    if hub is None:
        raise QuestreeError(f"{task.name} is nowhere to be fetched from.")
    for split in reversed(SPLITS):
        if split not in hub.splits:
            continue
        published = hub.splits[split]
        rows = _loaded(datasets, task, published)
        if missing := [column for column in hub.columns if column not in rows.column_names]:
            raise QuestreeError(
                f"{hub.id}, split {published}, lacks the columns {', '.join(missing)}; it has "
                f"{', '.join(rows.column_names)}. Is this another data set than {task.name}?"
            )
        for number, data in enumerate(rows, start=1):
            yield split, number, Row(f"{hub.id}, split {published}, row {number}", data)


def _loaded(datasets: Any, task: KnownTask, published: str) -> Any:
    hub = task.hub
    assert hub is not None
    options = dict(hub.options)
    if hub.files is not None:
        options["data_files"] = dict(hub.files)
    instead = f"With the files of its authors: questree fetch {task.name} --from FILE ({task.files}; {task.source})."
    try:
        return datasets.load_dataset(hub.id, hub.config, split=published, revision=hub.revision, **options)
    except datasets.exceptions.DatasetNotFoundError as problem:
        raise QuestreeError(f"There is no {hub.id} at revision {hub.revision} ({problem}). {instead}") from problem
    except OSError as problem:  # datasets raises ConnectionError, or FileNotFoundError for an address
        raise QuestreeError(f"{hub.id} cannot be reached ({_first_line(problem)}). {instead}") from problem
    except (ValueError, RuntimeError, datasets.exceptions.DatasetsError) as problem:
        raise QuestreeError(f"{hub.id} cannot be read ({_first_line(problem)}). {instead}") from problem


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {(str(problem).strip() or 'no reason given').splitlines()[0]}"
