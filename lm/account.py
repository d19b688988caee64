"""What LM requests were sent and what they took: each is on the disk before it is sent, so that no kill forgets it."""

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
from .transport import bound_replies

logger = logging.getLogger(__name__)


class Book(Protocol):
    """Where accounts are kept: each call with the run that it was made for, None for none."""

    def paid(self) -> dict[int | None, Spent]:
        """Return what was paid for each run, or sent and not answered, before this is asked."""

    def pay(self, call: int, run: int | None, spent: Spent, *, ended: bool) -> None:
        """Keep what a call took that has ended; or what was sent for it by now, which then outlives a kill."""


class Account(BaseCallback):
    """What all LM calls take while this is open: those of programs, judges, metrics, and DSPy's own proposers.

    A call counts for what it took once it has ended. Until then, and for ever if the process is killed, each request
    that was sent for it counts as a call with the tokens of its prompt.

    Args:
        book: that it is kept in, which an earlier attempt may have begun; None keeps nothing.
        run: of the calls; None for the account around those of all runs of the book, which count in `total`.
    """

    def __init__(self, book: Book | None = None, run: int | None = None) -> None:
        self.around: Account | None = None
        self.book, self.run = book, run
        paid = book.paid() if book else {}
        self._earlier, self._sum = paid.pop(run, Spent()), Spent()
        self._parts: dict[int | Account | None, Spent | Account] = {**paid} if run is None else {}
        self._calls = set[Meter]()  # those on their way
        self._others: dict[str, tuple[Meter, ExitStack]] = {}  # those that DSPy makes for itself
        self._closed = False
        self._changed = threading.Condition()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin a call that DSPy makes for itself, as for a proposal; a call of a program has a meter of its own."""
        remember_lm(instance)
        bound_replies(instance, inputs.get("kwargs") or {})  # its connection notes what it sends
        watch_cache()
        meter = Meter(instance, inputs.get("messages") or [{"content": str(inputs.get("prompt") or "")}])
        block = ExitStack()
        block.enter_context(metered(meter, {}))
        self._others[call_id] = meter, block

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Count such a call, in the context that it began in."""
        if call_id in self._others:
            meter, block = self._others.pop(call_id)
            block.close()
            history = [] if exception else meter.lm.history  # others may ask the same LM; a failed call has no entry
            meter.end(
                [one for one in reversed(history) if one.get("outputs") is outputs][:1] or history[-1:], exception
            )

    def begin(self, meter: Meter) -> None:
        """Let a call begin.

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
        if self.book is not None:
            self.book.pay(meter.number, self.run, meter.sent, ended=False)

    def end(self, meter: Meter, took: Spent) -> None:
        """Count what a call took."""
        if took.estimated:
            _tell_estimate(str(meter.lm.model))
        with self._changed:
            self._calls.discard(meter)
            self.add(took, meter.number)
            self._changed.notify_all()

    def add(self, took: Spent, call: int | None = None) -> None:
        """Count what a call took; what the client's cache gave was paid for before."""
        with self._changed:
            self._sum = total([self._sum, took])
            if self.book and not self._closed and (took.calls > took.cached or took.failed):
                self.book.pay(call or randbits(62), self.run, took, ended=True)

    @property
    def spent(self) -> Spent:
        """Return what the calls took that have ended, those of earlier attempts left out."""
        with self._changed:
            return self._sum

    @property
    def paid(self) -> Spent:
        """Return what was paid by now, in earlier attempts and for calls on their way too."""
        with self._changed:
            return total([self._earlier, self._sum, *(call.sent for call in self._calls)])

    @property
    def total(self) -> Spent:
        """Return what was paid by this account, those inside it, and those around it."""
        return self.around.total if self.around else self._with_parts()

    def check_budget(self, policy: RunPolicy | None) -> None:
        """Raise an `OutOfBudgetError` if nothing is left to spend."""
        if policy is not None and (over := policy.over_budget(self.total)):
            raise OutOfBudgetError(f"Stopped: {over}; run the same with more of it.")

    def _check_open(self) -> None:
        if self._closed:
            raise KeyboardInterrupt("what was asked for has ended")

    def _with_parts(self) -> Spent:
        with self._changed:
            parts = [*self._parts.values()]
        return total([self.paid, *(part._with_parts() if isinstance(part, Account) else part for part in parts)])

    @contextmanager
    def open(self) -> Iterator[Account]:
        """Count what is asked inside the block; an account around it counts that in its `total` alone."""
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
    """Return the line on what LM requests took that was not printed yet; None if none was sent."""
    paid = total([_ended.popitem()[1]] if _ended else [])
    requests, tokens = paid.calls - paid.cached + paid.failed, paid.tokens_in + paid.tokens_out
    cost = f", {dollars(paid.cost)}" if paid.cost else ""
    guessed = f" (of {paid.estimated:,} requests estimated)" if paid.estimated else ""
    return f"{requests:,} in all; {tokens:,} tokens{cost}{guessed}" if requests else None


_ended: dict[None, Spent] = {}  # what the last account paid that was inside no other


@lru_cache
def _tell_estimate(model: str) -> None:
    said = "The server of %s does not tell how many tokens its replies take: four bytes of text are counted as one."
    logger.warning(said, model)
