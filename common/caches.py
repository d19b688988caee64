"""What is made once: the folder of models, compiled extensions, tasks and LM replies; a function's last results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

from .errors import QuestreeError

T = TypeVar("T")

_LONG = 10_000  # characters; what is longer would hold much memory


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


def remembering(count: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Return a decorator of a function of a text: it keeps the last results, of texts that are not long."""

    def remembered(change: Callable[[str], T]) -> Callable[[str], T]:
        kept = lru_cache(maxsize=count)(change)

        @wraps(change)
        def changed(text: str) -> T:
            return kept(text) if len(text) <= _LONG else change(text)

        return changed

    return remembered
