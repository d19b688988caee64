"""The end of an optimizer when the budget is spent."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dspy

from ..evaluation.run import Interrupted
from ..lm.account import Account, Ledger
from ..lm.limits import RunPolicy
from ..lm.spent import Meter

logger = logging.getLogger(__name__)


class BudgetSpentError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does; an ordinary `Exception` would count as one more wrong answer."""


class LMBill(Account):
    """The account of a compilation. When the budget is spent, its optimizer cannot begin another call.

    Calls that annotations answer cost nothing. Calls that are on their way when the budget is spent are finished, so
    more than the budget may be spent.

    Args:
        ledger: of the compilation; None keeps nothing.
    """

    def __init__(self, policy: RunPolicy, ledger: Ledger | None = None) -> None:
        super().__init__(ledger)
        self._policy = policy

    def begin(self, meter: Meter) -> None:
        """Let a call begin.

        Raises:
            BudgetSpentError: if the budget is spent.
            KeyboardInterrupt: if the optimizer has ended: this is one of the threads that it left behind.
        """
        self.check(meter.lm)
        super().begin(meter)

    def check(self, lm: dspy.BaseLM | None = None) -> None:
        """Check that the budget is not spent, and that the LM's price is known where it must be.

        Args:
            lm: the LM to be asked, such as one that writes instructions; the configured one where None.

        Raises:
            BudgetSpentError: if not.
        """
        spent = self.total
        over = self._policy.over_budget(spent) or self._policy.unpriced(lm or dspy.settings.lm, spent)
        if over:
            raise BudgetSpentError(over)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Let no more calls begin once the block has ended, also by an error, and wait for those on their way.

        DSPy does not end the threads of an optimizer that is stopped: they would go on asking.

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
