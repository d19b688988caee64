"""The folder of what is made once: models, compiled extensions, tasks and LM replies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import QuestreeError


def cache_folder() -> Path:
    """Return the folder that ``QUESTREE_CACHE`` names, or the platform's cache folder.

    Raises:
        QuestreeError: no folder is named, and the user has no home.
    """
    if given := os.environ.get("QUESTREE_CACHE"):
        return Path(given).expanduser()
    try:
        return _platforms()
    except RuntimeError:
        raise QuestreeError("There is no home folder here; name a folder for caches: QUESTREE_CACHE.") from None


def _platforms() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "questree"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "questree" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "questree"
