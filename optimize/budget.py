"""The end of an optimizer when the budget is spent."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dspy

from ..evaluation.run import Interrupted
from ..lm.account import Account, Book
from ..lm.limits import RunPolicy
from ..lm.spent import Meter

logger = logging.getLogger(__name__)


class BudgetSpentError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does. It would count an ordinary `Exception` as one more wrong answer."""


class LMBill(Account):
    """The account of a compilation, which lets its optimizer begin no call when the budget is spent.

    Calls that annotations answer cost nothing. Calls that are on their way when the budget is spent are finished, and
    go beyond it.

    Args:
        book: of the compilation; None keeps nothing.
    """

    def __init__(self, policy: RunPolicy, book: Book | None = None) -> None:
        super().__init__(book)
        self._policy = policy

    def begin(self, meter: Meter) -> None:
        """Let a call begin.

        Raises:
            BudgetSpentError: if there is nothing left to pay it with.
            KeyboardInterrupt: if the optimizer has ended: this is one of the threads that it left behind.
        """
        self.check(meter.lm)
        super().begin(meter)

    def check(self, lm: dspy.BaseLM | None = None) -> None:
        """Check that there is something left to spend, and that it is known what the LM costs.

        Args:
            lm: that is to be asked, such as one that writes instructions; the configured one where None.

        Raises:
            BudgetSpentError: if not.
        """
        spent = self.total
        over = self._policy.over_budget(spent) or self._policy.unpriced(lm or dspy.settings.lm, spent)
        if over:
            raise BudgetSpentError(over)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Let no call begin when the block has ended, however it ends, and wait for those on their way.

        DSPy leaves the threads of an optimizer that is stopped to themselves: they would ask on.

        Raises:
            Interrupted: on Ctrl-C while it waits.
        """
        try:
            yield
        finally:
            with self._changed:
                self._closed = True
                if self._calls:
                    said = "Waiting for %d LM calls on their way, which are paid for. Ctrl-C now ends at once."
                    logger.warning(said, len(self._calls))
                try:
                    self._changed.wait_for(lambda: not self._calls)
                except KeyboardInterrupt:
                    raise Interrupted(at_once=True) from None
