"""What LM requests were sent and what they took: each is on the disk before it is sent, so that no kill forgets it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, Protocol

import dspy
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import LMError

from ..common.text import dollars
from .failure import remember_lm, was_sent
from .ledger import Spent, Usage, add_up, total, with_history
from .policy import OutOfBudgetError, RunPolicy
from .transport import bound_replies

Count = Callable[[str, int, int], None]
"""Called with what is being done, how many of it are done, and how many there are."""

logger = logging.getLogger(__name__)


class Book(Protocol):
    """Where accounts are kept: each call with the run that it was made for, None for none."""

    def paid(self) -> dict[int | None, Spent]:
        """Return what was paid for each run, or sent and not answered, before this is asked."""

    def new_call(self) -> int:
        """Return the number of a new call."""

    def note_sent(self, call: int, run: int | None, sent: Spent) -> None:
        """Keep what was sent for a call by now; it outlives a kill when this returns."""

    def note_took(self, call: int, run: int | None, took: Spent) -> None:
        """Keep what a call took that has ended."""


class Account(BaseCallback):
    """What all LM calls take that DSPy makes while this listens: those of programs, judges, metrics and proposers.

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
        self._calls: dict[str, _Call] = {}  # those on their way
        self._closed = False
        self._changed = threading.Condition()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin a call.

        Raises:
            KeyboardInterrupt: if the account is closed: this is one of the threads that a stop left behind.
        """
        remember_lm(instance)
        bound_replies(instance)  # its connection notes what it sends
        with self._changed:
            self._check_open()
            self._calls[call_id] = _Call(self, instance, inputs)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Count what a call took."""
        with self._changed:
            call = self._calls.pop(call_id, None)
            if call is not None:
                self.add(call.end(outputs, exception), call.number)
                self._changed.notify_all()

    def add(self, took: Spent, call: int | None = None) -> None:
        """Count what a call took, or calls of another process; what the client's cache gave was paid for before."""
        with self._changed:
            self._sum = total([self._sum, took])
            if self.book and not self._closed and (took.calls > took.cached or took.failed):
                self.book.note_took(call or self.book.new_call(), self.run, took)

    def send(self, sent: Spent, call: int | None) -> int | None:
        """Note that a request is about to be sent, and what was sent for its call with it; return the call's number.

        Raises:
            KeyboardInterrupt: if the account is closed.
        """
        with self._changed:
            self._check_open()
        if self.book is None:
            return None
        number = call or self.book.new_call()
        self.book.note_sent(number, self.run, sent)
        return number

    @property
    def spent(self) -> Spent:
        """Return what the calls took that have ended, those of earlier attempts left out."""
        with self._changed:
            return self._sum

    @property
    def paid(self) -> Spent:
        """Return what was paid by now, in earlier attempts and for calls on their way too."""
        with self._changed:
            return total([self._earlier, self._sum, *(call.sent for call in self._calls.values())])

    @property
    def total(self) -> Spent:
        """Return what was paid by this account, those inside it, and those around it."""
        return self.around.total if self.around else self._with_parts()

    def check_budget(self, policy: RunPolicy | None) -> None:
        """Raise an `OutOfBudgetError` if nothing is left to spend."""
        if policy is not None and (over := policy.over_budget(self.total)):
            raise OutOfBudgetError(f"Stopped: {over}; run the same with more of it.")

    def bounded(self, count: Count, policy: RunPolicy) -> Count:
        """Return the same counting, which ends with the budget, unless all is done."""

        def counted(what: str, done: int, all_: int) -> None:
            count(what, done, all_)
            if done < all_:
                self.check_budget(policy)

        return counted

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
        others = [one for one in dspy.settings.callbacks if not isinstance(one, Account)]
        self.around = next((one for one in dspy.settings.callbacks if isinstance(one, Account)), None)
        if self.around:
            with self.around._changed:
                self.around._parts[self.run or self] = self
        try:
            with dspy.context(callbacks=[*others, self]):
                yield self
        finally:
            with self._changed:
                self._closed = True  # a call that is still on its way counts as sent
            if self.around is None:
                _ended[None] = self.total


def told() -> str | None:
    """Return what this process has told nobody yet: all that the last budget paid; None if that is nothing."""
    paid = total([_ended.popitem()[1]] if _ended else [])
    requests, tokens = paid.calls - paid.cached + paid.failed, paid.tokens_in + paid.tokens_out
    cost = f", {dollars(paid.cost)}" if paid.cost else ""
    guessed = f" (of {paid.estimated:,} requests estimated)" if paid.estimated else ""
    return f"{requests:,} in all; {tokens:,} tokens{cost}{guessed}" if requests else None


_ended: dict[None, Spent] = {}  # what the last account paid that no other one was around


class _Call(Usage):
    """An LM call on its way, which may be several requests. DSPy's settings lead the connection to it."""

    def __init__(self, account: Account, lm: dspy.BaseLM, inputs: Mapping[str, Any]):
        super().__init__(dspy.settings.usage_tracker)
        self.account, self.lm, self.inputs = account, lm, inputs
        self.sent = Spent()
        self.number: int | None = None
        self._noted = ExitStack()
        self._noted.enter_context(dspy.context(usage_tracker=self, **with_history()))

    def note_sent(self) -> None:
        """Count a request before it is sent, as if it got no reply."""
        messages = self.inputs.get("messages") or [{"content": str(self.inputs.get("prompt") or "")}]
        about = add_up([{"cached": False, "model": self.lm.model, "messages": messages}])
        self.sent = total([self.sent, about])
        self.number = self.account.send(self.sent, self.number)
        super().note_sent()

    def end(self, outputs: Any, exception: BaseException | None) -> Spent:
        """Return what it took; a failed one has no entry in the history. It has to end in the context it began in."""
        self._noted.close()
        if exception is not None:
            return Spent(failed=max(self.sends, isinstance(exception, LMError) and was_sent(exception)))
        history = self.lm.history  # others may ask the same LM
        entries = [one for one in reversed(history) if one.get("outputs") is outputs][:1] or history[-1:]
        took = add_up(self.described(entries))
        if took.estimated:
            _tell_estimate(str(self.lm.model))
        return took.model_copy(update={"failed": max(self.sends - took.calls, 0)})


@lru_cache
def _tell_estimate(model: str) -> None:
    said = "The server of %s does not tell how many tokens its replies take: four bytes of text are counted as one."
    logger.warning(said, model)
