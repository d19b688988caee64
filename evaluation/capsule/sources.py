"""Runs to look at, from capsules and folders, each with what was asked for its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...lm.exchanges import Exchange
from ..kept_exchanges import KeptExchanges
from ..stored_runs import StoredRun, kept_exchanges, stored_runs
from .packed_run import PackedRun, read_runs


class ShownRun(NamedTuple):
    """A run, and what was asked for each of its questions outside the program; empty where that was not kept."""

    run: StoredRun
    asked: Mapping[str, KeptExchanges]


def read_sources(sources: Sequence[Path]) -> list[ShownRun]:
    """Return the runs of capsules (files), and then those of folders.

    Raises:
        QuestreeError: one cannot be read.
    """
    found = [
        ShownRun(_as_stored(run), _kept(run.asked))
        for source in sources
        if source.is_file()
        for run in read_runs(source)
    ]
    folders = [source for source in sources if not source.is_file()]
    return found + [ShownRun(run, kept_exchanges(run.folder)) for run in (stored_runs(folders) if folders else [])]


def _as_stored(run: PackedRun) -> StoredRun:
    header = run.header
    return StoredRun(header.name, run.records, header.identity, metrics=header.metrics, seed=header.seed)


def _kept(asked: Mapping[str, Sequence[Exchange]]) -> dict[str, KeptExchanges]:
    return {id: KeptExchanges.of(id, exchanges) for id, exchanges in asked.items()}
