"""The LM's replies on disk: what was answered once is not paid for again, whatever ends the process."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from .retrieval.errors import QuestreeError

if TYPE_CHECKING:
    from .settings import RunSettings


def use_lm_cache(settings: RunSettings) -> None:
    """Keep the LM's replies on disk, each before it is made use of, in a private folder for each server address.

    DSPy's cache key does not tell servers apart, so that one server would be given another's answers; what it reads
    it would unpickle without restriction (CVE-2025-69872); and replies as another DSPy keeps them may not be what
    this one takes them for, so each minor version has a folder. A reply that was changed on disk is not used.

    Raises:
        QuestreeError: if the folder cannot be written, or holds something else.
    """
    import dspy

    from .reply_store import SIZE, ReplyStore

    folder = _folder(settings, ".".join(dspy.__version__.split(".")[:2]))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        dspy.configure_cache(disk_cache_dir=str(folder), disk_size_limit_bytes=SIZE, restrict_pickle=True)
        dspy.cache.disk_cache.close()
        dspy.cache.disk_cache = ReplyStore(folder)
    except Exception as error:  # of a damaged database, whatever comes of it
        raise QuestreeError(
            f"The LM's replies cannot be kept in {folder}: {getattr(error, 'strerror', None) or error}. Make room or "
            "the folder writable, delete it if it is damaged, or name another place: QUESTREE_CACHE."
        ) from error


def _folder(settings: RunSettings, version: str) -> Path:
    from .retrieval.cache_folder import cache_folder

    address = hashlib.sha256((settings.api_base or "").encode()).hexdigest()[:12]
    return cache_folder() / "lm" / f"dspy-{version}-sealed" / address
