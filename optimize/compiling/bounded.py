"""DSPy's own waiting while it compiles, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ...programs.modules.waiting import LONGEST_WAIT


@contextmanager
def bounded_waits() -> Iterator[None]:
    """Inside, DSPy asks no question twice because it is slow, and obeys no server that asks for a day.

    ``dspy.Evaluate`` and ``dspy.Parallel``, of which every optimizer makes use, begin a question anew that has run
    for 120 seconds when three or fewer are left (``ParallelExecutor``): it is paid for again, and again after 120
    more. A question ends by its deadline here. And where an optimizer asks an LM itself, the client waits as long
    as ``Retry-After`` says.
    """
    from dspy.clients import execution
    from dspy.utils.parallelizer import ParallelExecutor

    made, delay = ParallelExecutor.__init__, execution._delay

    def patient(executor: Any, *args: Any, **how: Any) -> None:
        made(executor, *args, **how)
        executor.timeout = 0

    def bounded(error: Exception, attempt: int) -> float:
        return min(float(delay(error, attempt)), LONGEST_WAIT)

    with patch.object(ParallelExecutor, "__init__", patient), patch.object(execution, "_delay", bounded):
        yield
