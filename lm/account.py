"""Count LM requests and their cost: each is on the disk before our connection sends it, so that a kill loses none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from secrets import randbits
from typing import Any, Protocol

from dspy.utils.callback import BaseCallback

from ..common.text import dollars
from .failure import remember_lm
from .kept_replies import watch_cache
from .limits import OutOfBudgetError, RunPolicy
from .scope import scope, scoped
from .spent import Meter, Spent, metered, other_callbacks, total
from .transport import use_our_connection

logger = logging.getLogger(__name__)


class Ledger(Protocol):
    """A store of accounts: each call with the run that it was made for; None for a call of no run."""

    def paid(self) -> dict[int | None, Spent]:
        """Return what was paid for each run until now, with requests that got no answer."""

    def pay(self, call: int, run: int | None, spent: Spent, *, ended: bool) -> None:
        """Keep what an ended call took; or what a running call has sent by now, so that it outlives a kill."""


class Account(BaseCallback):
    """Counts what all LM calls take while it is open: those of programs, judges, metrics, and DSPy's own proposers.

    A call that has ended counts with what it took. Until then, or for good if the process is killed, each request
    that was sent for it counts as a call with the tokens of its prompt.

    Args:
        ledger: where it is kept; an earlier attempt may have begun it. None keeps nothing.
        run: of the calls; None for the account around the accounts of all runs, which count in its `total`.
    """

    def __init__(self, ledger: Ledger | None = None, run: int | None = None) -> None:
        self.around: Account | None = None
        self.ledger, self.run = ledger, run
        paid = ledger.paid() if ledger else {}
        self._earlier, self._sum = paid.pop(run, Spent()), Spent()
        self._parts: dict[int | Account | None, Spent | Account] = {**paid} if run is None else {}
        self._calls = set[Meter]()  # calls on their way
        self._others: dict[str, tuple[Meter, ExitStack]] = {}  # calls that DSPy makes for itself
        self._closed = False
        self._changed = threading.Condition()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin a call that DSPy makes for itself, as for a proposal; a call of a program has a meter of its own."""
        remember_lm(instance)
        use_our_connection(instance, inputs.get("kwargs") or {})  # its connection notes what it sends
        watch_cache()
        meter = Meter(instance, inputs.get("messages") or [{"content": str(inputs.get("prompt") or "")}])
        block = ExitStack()
        block.enter_context(metered(meter, {}))
        self._others[call_id] = meter, block

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Count a call that DSPy made for itself, in the context that it began in."""
        if call_id in self._others:
            meter, block = self._others.pop(call_id)
            block.close()
            history = [] if exception else meter.lm.history  # other calls may use this LM; a failed one has no entry
            meter.end(
                [one for one in reversed(history) if one.get("outputs") is outputs][:1] or history[-1:], exception
            )

    def begin(self, meter: Meter) -> None:
        """Note a call that begins.

        Raises:
            KeyboardInterrupt: if the account is closed: this is one of the threads that a stop left behind.
        """
        with self._changed:
            self._check_open()
            self._calls.add(meter)

    def send(self, meter: Meter) -> None:
        """Note that a request is about to be sent.

        Raises:
            KeyboardInterrupt: if the account is closed.
        """
        with self._changed:
            self._check_open()
        if self.ledger is not None:
            self.ledger.pay(meter.number, self.run, meter.sent, ended=False)

    def end(self, meter: Meter, took: Spent) -> None:
        """Count what a call took."""
        if took.estimated:
            _warn_estimate(str(meter.lm.model))
        with self._changed:
            self._calls.discard(meter)
            self.add(took, meter.number)
            self._changed.notify_all()

    def add(self, took: Spent, call: int | None = None) -> None:
        """Count what a call took; answers of the client's cache cost nothing."""
        with self._changed:
            self._sum = total([self._sum, took])
            if self.ledger and not self._closed and (took.calls > took.cached or took.failed):
                self.ledger.pay(call or randbits(62), self.run, took, ended=True)

    @property
    def spent(self) -> Spent:
        """Return what the ended calls of this attempt took."""
        with self._changed:
            return self._sum

    @property
    def paid(self) -> Spent:
        """Return what was paid by now, with earlier attempts and calls on their way."""
        with self._changed:
            return total([self._earlier, self._sum, *(call.sent for call in self._calls)])

    @property
    def total(self) -> Spent:
        """Return what was paid by the outermost account and all accounts inside it."""
        return self.around.total if self.around else self._with_parts()

    def check_budget(self, policy: RunPolicy | None) -> None:
        """Raise an `OutOfBudgetError` if the budget is spent."""
        if policy is not None and (over := policy.over_budget(self.total)):
            raise OutOfBudgetError(f"Stopped: {over}; run the same with a larger budget.")

    def _check_open(self) -> None:
        if self._closed:
            raise KeyboardInterrupt("the account of this call is closed")

    def _with_parts(self) -> Spent:
        with self._changed:
            parts = [*self._parts.values()]
        return total([self.paid, *(part._with_parts() if isinstance(part, Account) else part for part in parts)])

    @contextmanager
    def open(self) -> Iterator[Account]:
        """Count the calls inside the block; an account around it counts them only in its `total`."""
        self.around = scope().account
        if self.around:
            with self.around._changed:
                self.around._parts[self.run or self] = self
        try:
            with scoped({"callbacks": [*other_callbacks(), self]}, account=self):
                yield self
        finally:
            with self._changed:
                self._closed = True  # a call that is still on its way counts as sent
            if self.around is None:
                _ended[None] = self.total


def cost_line() -> str | None:
    """Return the cost line that was not printed yet; None if no request was sent."""
    paid = total([_ended.popitem()[1]] if _ended else [])
    requests, tokens = paid.calls - paid.cached + paid.failed, paid.tokens_in + paid.tokens_out
    cost = f", {dollars(paid.cost)}" if paid.cost else ""
    guessed = f" (of {paid.estimated:,} requests estimated)" if paid.estimated else ""
    return f"{requests:,} in all; {tokens:,} tokens{cost}{guessed}" if requests else None


_ended: dict[None, Spent] = {}  # what the last outermost account paid


@lru_cache
def _warn_estimate(model: str) -> None:
    said = "The server of %s does not tell how many tokens its replies take: four bytes of text are counted as one."
    logger.warning(said, model)
