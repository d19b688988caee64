"""What an optimizer's LM calls cost, and its end when the budget is spent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..common.json_files import parse_json, read_bytes, validate
from ..lm.failure import remember_lm
from ..lm.ledger import Spent, add_up, total
from ..lm.policy import RunPolicy
from .annotations import is_free


class BudgetSpentError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does. It would count an ordinary `Exception` as one more wrong answer."""


class LMBill(BaseCallback):
    """What all LM calls cost that are made while it listens: those of programs, proposers and judges.

    Calls that annotations answer cost nothing. Calls that are on their way when the budget is spent are finished, and
    go beyond it.

    Args:
        policy: has the budget.
        before: what the same budget has paid for already.
        file: keeps what an attempt paid that did not succeed, for the next attempt; None keeps nothing.

    Raises:
        QuestreeError: if the file is damaged.
    """

    def __init__(self, policy: RunPolicy, before: Spent, file: Path | None = None) -> None:
        self._policy, self._file = policy, file
        self._earlier = _read(file) if file else Spent()
        self._before = total([before, self._earlier])
        self._lms: dict[str, dspy.BaseLM] = {}
        self._sum = Spent()
        self._lock = threading.Lock()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Let a call begin.

        Raises:
            BudgetSpentError: if there is nothing left to pay it with.
        """
        remember_lm(instance)
        if is_free(instance):
            return
        self.check()
        with self._lock:
            self._lms[call_id] = instance

    def check(self) -> None:
        """Check that there is something left to spend.

        Raises:
            BudgetSpentError: if not.
        """
        spent = total([self._before, self.spent])
        over = self._policy.over_budget(spent) or self._policy.unpriced(dspy.settings.lm, spent)
        if over:
            raise BudgetSpentError(over)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Add what a call cost. A failed one has no entry in its LM's history, and is counted apart."""
        with self._lock:
            lm = self._lms.pop(call_id, None)
            if lm is None:
                return
            history = lm.history
            last = Spent(failed=1) if exception is not None else add_up(history[-1:])
            self._sum = total([self._sum, last])

    @property
    def spent(self) -> Spent:
        """Return the sum so far, without what was paid before."""
        with self._lock:
            return self._sum

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what the block pays for the next attempt, if this one fails."""
        try:
            yield
        except BaseException:
            if self._file is not None:
                write_atomically(self._file, total([self._earlier, self.spent]).model_dump_json())
            raise
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _read(file: Path) -> Spent:
    try:
        spent = validate(Spent, parse_json(read_bytes(file)))
        if min(spent.model_dump().values()) < 0:
            raise ValueError("nobody pays less than nothing")
    except FileNotFoundError:
        return Spent()
    except (OSError, ValueError) as error:
        raise QuestreeError(
            f"{file}, which says what was paid so far, is damaged ({error}); delete it to count anew."
        ) from error
    return spent
