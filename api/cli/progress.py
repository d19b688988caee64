"""Bars that show how far a command is, and what it spent."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TaskID, TimeRemainingColumn

from .report import bill
from .screen import Screen, clear_stdout

if TYPE_CHECKING:
    from ..evaluation import Progress as RunProgress
    from ..optimize import CompileProgress
    from ..retrieval import BuildProgress

_BETWEEN_LINES = 30.0


@contextmanager
def progress_bars(as_json: bool = False) -> Iterator[Bars]:
    """Show bars while the block runs; what libraries print meanwhile keeps out of JSON."""
    with clear_stdout(as_json), Bars() as bars:
        yield bars


class Bars(Progress):
    """Bars by name, each with a text at its end. Its methods are what commands give as ``on_progress``."""

    def __init__(self) -> None:
        columns = (
            "{task.description}",
            BarColumn(),
            "{task.fields[text]}",
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        super().__init__(*columns, console=Screen(stderr=True))
        self._setting_up = self.add_task("setting up", total=None, text="libraries, index, store of runs")
        self._named: dict[Hashable, TaskID] = {}
        self._runs: dict[str, RunProgress] = {}
        self._best = 0, 0.0  # questions and score: on few questions a high score comes easily
        self._stage = "", 0.0

    def run(self, name: str, progress: RunProgress) -> None:
        """Show how far a run is and what it spent, and from the second run on all of them together."""
        self._runs[name] = progress
        self.count(name, progress.done, progress.total, _spent([progress]), key=name)
        if len(runs := list(self._runs.values())) > 1:
            done, total = sum(run.done for run in runs), sum(run.total for run in runs)
            self.count("so far", done, total, _spent(runs), key="")

    def questions(self, progress: RunProgress) -> None:
        """Show how far the only run is."""
        self.run("questions", progress)

    def count(self, what: str, done: int, total: int, text: str = "", *, key: Hashable = None) -> None:
        """Show how many are done of something; there is a bar for each key, which is the thing and its number."""
        self._show(what, done, total, f"{done}/{total} {text}", key=key or (what, total))

    def compilation(self, progress: CompileProgress) -> None:
        """Show the stage of a compilation, with the best candidate so far."""
        text, done, total = "", None, None
        if progress.questions is not None:
            done, total = progress.questions.done, progress.questions.total
            text = f"{done}/{total} questions"
        elif (one := progress.candidate) is not None:
            self._best = max(self._best, (one.questions, one.score))
            scored = f"{one.score:.3f} on {one.questions} questions"
            text = f"candidate {one.number}: {scored}; best {self._best[1]:.3f} on {self._best[0]}"
        self._show(progress.stage, done, total, text)

    def index(self, progress: BuildProgress) -> None:
        """Show a stage of an index: a bar; where no terminal is, a line for each stage, and one now and then."""
        text = f"{progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")
        text += f", {progress.kept:,} of them kept" if progress.kept else ""
        text += f", {decimal(progress.bytes)} when done" if progress.bytes else ""
        if self.console.is_terminal:
            self._show(progress.stage, progress.done, progress.total or None, text)
        elif progress.stage != self._stage[0] or time.monotonic() > self._stage[1] + _BETWEEN_LINES:
            self._stage = progress.stage, time.monotonic()
            self.console.print(f"{progress.stage}: {text}".removesuffix(": 0"), soft_wrap=True, highlight=False)

    def stop(self) -> None:
        """Leave the bars on the screen."""
        self.update(self._setting_up, visible=False)
        super().stop()

    def _show(self, name: str, done: int | None, total: int | None, text: str, *, key: Hashable = None) -> None:
        """Move a bar; add it first, if there is none of this key (the name, where None)."""
        key = name if key is None else key
        if key not in self._named:
            self.update(self._setting_up, visible=False)
            self._named[key] = self.add_task(name, total=total, text="")
        self.update(self._named[key], completed=done, total=total, text=text)


def _spent(runs: Sequence[RunProgress]) -> str:
    spent = [run.spent for run in runs]
    calls, cost = sum(one.calls for one in spent), sum(one.cost for one in spent)
    text = bill(calls, sum(one.tokens_in + one.tokens_out for one in spent), cost)
    failed = sum(run.failed for run in runs)
    return f"{text}, {failed} failed" if failed else text
