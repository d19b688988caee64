"""Runs to look at, from capsules and folders, each with what was asked for its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ...lm.exchanges import Exchange
from ..comparison.labels import unused
from ..kept_exchanges import KeptExchanges
from ..stored_runs import StoredRun, kept_exchanges, stored_runs
from .packed_run import PackedRun, read_runs


class ShownRun(NamedTuple):
    """A run, and what was asked for each of its questions outside the program; empty where that was not kept."""

    run: StoredRun
    asked: Mapping[str, KeptExchanges]


def read_sources(sources: Sequence[Path]) -> list[ShownRun]:
    """Return the runs of capsules (files), and then those of folders; where two have one name, it tells the source too.

    Raises:
        QuestreeError: one cannot be read.
    """
    capsules = [source for source in sources if source.is_file()]
    folders = [source for source in sources if not source.is_file()]
    found = [
        (f"{source.stem}/{run.header.name}", ShownRun(_as_stored(run), _kept(run.asked)))
        for source in capsules
        for run in read_runs(source)
    ]
    stored = stored_runs(folders) if folders else []
    found += [(str(run.folder), ShownRun(run, kept_exchanges(run.folder))) for run in stored]
    named: dict[str, ShownRun] = {}
    for place, one in found:
        name = one.run.name if one.run.name not in named else unused(place, named)
        named[name] = one._replace(run=replace(one.run, name=name))
    return list(named.values())


def _as_stored(run: PackedRun) -> StoredRun:
    header = run.header
    return StoredRun(header.name, run.records, header.identity, metrics=header.metrics, seed=header.seed)


def _kept(asked: Mapping[str, Sequence[Exchange]]) -> dict[str, KeptExchanges]:
    return {id: KeptExchanges.of(id, exchanges) for id, exchanges in asked.items()}
