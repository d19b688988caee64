"""The folder of task files."""

from __future__ import annotations

import os
from pathlib import Path

from ..common.caches import cache_folder
from ..common.errors import QuestreeError

DATA_VARIABLE = "QUESTREE_DATA"
"""The environment variable that names the folder of task files."""


def data_folder(data_dir: str | Path | None = None) -> Path:
    """The folder given, else what ``QUESTREE_DATA`` names, else ``tasks`` in the cache folder (which may be absent).

    Raises:
        QuestreeError: if one is named that is no folder.
    """
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if not named:
        return cache_folder() / "tasks"
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise QuestreeError(f"The data folder {folder} does not exist (set by data_dir or {DATA_VARIABLE}).")
    return folder
