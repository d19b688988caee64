"""A progress bar in a notebook, where no ``on_progress`` is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..common.text import dollars


def notebook_bar(what: str = "questions") -> Callable[[Any], None]:
    """Return an ``on_progress`` that shows a bar in a notebook, and nothing elsewhere.

    Args:
        what: stands before the bar.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal; `questree`'s own commands have bars of their own
        return lambda progress: None
    from tqdm import tqdm  # type: ignore[import-untyped]

    bar = tqdm(desc=what, unit="question")

    def show(progress: Any) -> None:
        bar.total, bar.n = progress.total, progress.done
        cost = f", {dollars(progress.spent.cost)}" if progress.spent.cost else ""
        bar.set_postfix_str(f"{progress.spent.calls} calls{cost}, {progress.failed} failed")
        if progress.done == progress.total:
            bar.close()

    return show
