"""questree tasks"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import options
from .screen import echo

if TYPE_CHECKING:
    from pathlib import Path

    from ..data import KnownTask


def tasks(as_json: options.AsJson = False) -> None:
    """List the tasks that --task knows by name, and which of them are here."""
    from ..data import KNOWN_TASKS, SPLITS, data_folder, task_names
    from .report import print_figures

    folder = data_folder()
    headings = ("task", "questions from", "train / dev / test", "metric", "answers", "corpus", "licence", "here")
    lines = []
    for task in KNOWN_TASKS.values():
        sizes = " / ".join(f"{task.sizes[split]:,}" if split in task.sizes else "-" for split in SPLITS)
        cells = (
            task.name,
            _origin(task),
            sizes if task.sizes else "-",
            task.metric,
            task.style,
            task.corpus.name if task.corpus else "-",
            task.licence,
            _here(task, folder),
        )
        lines.append(dict(zip(headings, cells, strict=True)))
    for name in task_names():
        if name not in KNOWN_TASKS:
            here = "your file" if (folder / f"{name}.jsonl").is_file() else "installed"
            lines.append({**dict.fromkeys(headings, "-"), "task": name, "here": here})
    if as_json:
        options.print_json(json.dumps(lines, ensure_ascii=False, indent=2))
        return
    print_figures(lines, simulated=False)
    echo(f"{folder} holds what is here. Get a task: questree fetch NAME")
    echo("Samples of the papers, by name after a colon (--task hotpotqa:tree-of-reviews):")
    for task in KNOWN_TASKS.values():
        if task.samples:
            echo(f"  {task.name}: {', '.join(task.samples)}")


def _origin(task: KnownTask) -> str:
    """Return the repository on the hub, or the address where there is none."""
    return task.hub.id if task.hub and "/" in task.hub.id else task.source.removeprefix("https://")


def _here(task: KnownTask, folder: Path) -> str:
    from ..common.errors import QuestreeError
    from ..data import read_task_manifest

    if task.name == "mini":
        return "bundled"
    try:
        if read_task_manifest(folder, task.name):
            return "fetched"
    except QuestreeError:
        return "incomplete"
    return "your file" if (folder / f"{task.name}.jsonl").is_file() else ""
