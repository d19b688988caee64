"""The folder for what is made once for all runs: models, compiled extensions, downloaded tasks, LM replies."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder that ``QUESTREE_CACHE`` names, or the platform's cache folder."""
    if given := os.environ.get("QUESTREE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "questree"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "questree" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "questree"
