"""How far an index is: a bar on a screen, lines in a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..retrieval import Progress
    from ..retrieval.indexes.index_kind import Report

_BETWEEN_LINES = 30.0


@contextmanager
def shown_progress(console: Console) -> Iterator[Report]:
    """What is done now, how fast it goes, how long it takes and how large the index will be."""
    if console.is_terminal:
        with _bar(console) as shown:
            yield shown
    else:
        yield _lines(console)


@contextmanager
def _bar(console: Console) -> Iterator[Report]:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    clock = _Clock()
    with Bar(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), console=console) as bar:
        task = bar.add_task("starting", total=None, told="")

        def shown(now: Progress) -> None:
            bar.update(task, description=now.stage, completed=now.done, total=now.total or None, told=clock.told(now))

        yield shown


def _lines(console: Console) -> Report:
    clock, last = _Clock(), ("", 0.0)

    def shown(now: Progress) -> None:
        nonlocal last
        if now.stage != last[0] or time.monotonic() > last[1] + _BETWEEN_LINES:
            last = (now.stage, time.monotonic())
            console.print(f"{now.stage}: {clock.told(now)}".removesuffix(": "), soft_wrap=True, highlight=False)

    return shown


class _Clock:
    """Since when the present stage runs, and with how much done before."""

    def __init__(self) -> None:
        self._stage, self._started, self._before = "", 0.0, 0

    def told(self, now: Progress) -> str:
        """Counts, speed, time left and size of a stage, as far as they are known."""
        if now.stage != self._stage:
            self._stage, self._started, self._before = now.stage, time.monotonic(), now.done
        if not now.total and not now.done:
            return ""
        parts = [f"{now.done:,}" + (f" of {now.total:,}" if now.total else "")]
        if now.kept:
            parts.append(f"{now.kept:,} of them kept")
        seconds, done = time.monotonic() - self._started, now.done - self._before
        if seconds > 1 and done > 0:
            rate = done / seconds
            parts.append(f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second")
            if now.total:
                parts.append(f"{_duration((now.total - now.done) / rate)} left")
        if now.bytes:
            from ..common.text import readable_size

            parts.append(f"{readable_size(now.bytes)} when done")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours}:{minutes:02}:{round(seconds) % 60:02}" if hours else f"{minutes}:{round(seconds) % 60:02}"
