"""One LM call: bounded retries that can really differ, and a typed failure instead of an invented answer."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError, LMInvalidRequestError

from . import retries as waiting
from .failure import (
    CallFailedError,
    Cause,
    cause_of,
    first_line,
    may_pass,
    overflows,
    shortened,
    was_sent,
    without_secrets,
)
from .guard import guarded, writable
from .ledger import enter
from .limits import check_deadline, limits, time_left
from .parallel import AbandonedError, within
from .window import Drop, fit, remember_shown, shorten

ATTEMPTS = 3
RETRY_TEMPERATURE = 0.7  # at 0 the client's cache, and most models, would give the same bad reply again
SHORTENINGS = 4  # of a prompt that the server finds too long all the same
TIMEOUT = 120.0  # seconds of a request, where neither the limits nor the LM say any
RETRIES = 3  # as many as a `dspy.LM` has of itself
LONGEST_PROMPT, LONGEST_REPLY = 6000, 3000  # characters of them that a failure keeps


def call(
    predict: dspy.Predict, config: dict[str, Any] | None = None, *, drop: Drop = "last", **inputs: Any
) -> dspy.Prediction:
    """Call a predictor until a whole reply parses.

    A prompt that may overflow the LM's window is sent with fewer passages. A reply that cannot be parsed is asked
    for again, above temperature 0 and past the cache; one that was cut at the token limit, with twice the room; a
    request that got none (429, 5xx, a broken connection, a timeout), after a wait; a prompt that overflows all the
    same, with a passage less, or its only one halved. Each is bounded, by the question's deadline as well.

    Args:
        predict: the predictor.
        config: options of the LM for this call, such as a temperature to sample at.
        drop: which of the ``passages`` is the one to do without.
        inputs: the predictor's fields.

    Raises:
        CallFailedError: with the cause, when no attempt gave a whole, parsable reply or the LM cannot be had.
    """
    try:
        return _Call(predict, dict(config or {}), drop, inputs).made()
    except CallFailedError as error:
        error.predict = predict
        raise


class _Call:
    """A call with what was tried for it."""

    def __init__(self, predict: dspy.Predict, config: dict[str, Any], drop: Drop, inputs: dict[str, Any]):
        lm = predict.lm or dspy.settings.lm
        if lm is None:
            raise CallFailedError("auth", "no LM is configured; dspy.configure(lm=dspy.LM(...)) or pass --lm")
        self.predict, self.config, self.drop, self.inputs, self.lm = predict, config, drop, inputs, lm
        # The adapter's own fallback would double every failed call and take the same reply from the cache.
        self.adapter = dspy.settings.adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)
        self.name = str(predict.signature.__name__)
        self.attempts = self.retries = self.shortenings = 0
        self.cut: _TruncatedError | None = None
        self.reply = ""

    def made(self) -> dspy.Prediction:
        """Return the reply, after as many requests as it takes and is allowed."""
        try:
            return self.ask()
        except CallFailedError as error:
            prompt, reply = (without_secrets(text, self.lm) for text in (self.prompt(), self.reply))
            error.add_where(prompt=shortened(prompt, LONGEST_PROMPT), reply=shortened(reply, LONGEST_REPLY))
            raise

    def ask(self) -> dspy.Prediction:
        """Ask until a reply can be used, or no further request is allowed."""
        while True:
            check_deadline(self.name)
            most = self.config.get("max_tokens") or self.lm.kwargs.get("max_tokens")
            self.inputs = fit(self.predict, self.inputs, self.lm, self.adapter, most, self.drop)
            try:
                return remember_shown(self.ask_once(), self.inputs)
            except (AdapterParseError, _TruncatedError) as error:
                self.ask_otherwise(error)
            except LMError as error:
                if was_sent(error):
                    enter(failed="context-window" if overflows(error) else cause_of(error))
                if overflows(error):
                    self.shorten(error)
                else:
                    self.wait(error)

    def ask_otherwise(self, error: AdapterParseError | _TruncatedError) -> None:
        """The same again would come from the cache, or be the same: another sample, with more room if it was cut."""
        self.attempts += 1
        if self.attempts == ATTEMPTS:
            cause: Cause = "truncated" if isinstance(error, _TruncatedError) else "unparsable"
            raise self.failed(cause, error) from error
        rollout = self.lm.kwargs.get("rollout_id") or 0  # of a sample: the retries of two samples differ as well
        self.config |= {"rollout_id": rollout + self.attempts, "temperature": RETRY_TEMPERATURE}
        if isinstance(error, _TruncatedError):
            self.cut = error
            self.config["max_tokens"] = 2 * error.max_tokens

    def shorten(self, error: LMError) -> None:
        """One passage less than the server found too many."""
        self.shortenings += 1
        shorter = shorten(self.predict, self.inputs, self.drop) if self.shortenings <= SHORTENINGS else None
        if shorter is None:
            raise self.failed("context-window", error) from error
        self.inputs = shorter

    def wait(self, error: LMError) -> None:
        """Before the same request is sent again, if it may be."""
        self.retries += 1
        bound = limits().retries
        if self.cut and isinstance(error, LMInvalidRequestError):  # more room than the model may be given
            raise self.failed("truncated", self.cut) from error
        if not may_pass(error) or self.retries > (self.lm.num_retries if bound is None else bound):
            raise self.failed(cause_of(error), error) from error
        seconds = waiting.wait_before(self.retries, error)
        check_deadline(self.name, seconds, because=first_line(error))
        waiting.sleep(seconds)

    def failed(self, cause: Cause, error: Exception) -> CallFailedError:
        """The failure that this call ends in; to be raised."""
        return CallFailedError(cause, without_secrets(f"{self.name}: {first_line(error)}", self.lm))

    def prompt(self) -> str:
        """Return the texts of the prompt that is sent, each after its role."""
        inputs = guarded(self.inputs, self.predict.signature, self.adapter)
        messages = self.adapter.format(self.predict.signature, self.predict.demos, inputs)
        return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)

    def ask_once(self) -> dspy.Prediction:
        """One request, or a look into the cache."""
        # A copy shares the connection and has a history of its own: what this one call cost, whatever runs beside it.
        lm = self.lm.copy(num_retries=0, **_timeout(self.lm))
        trace: list[Any] = []  # of its own, so that a reply that was cut leaves none to learn from
        tracker = _Tracker(dspy.settings.usage_tracker)
        given = guarded(self.inputs, self.predict.signature, self.adapter)
        try:
            with dspy.context(adapter=self.adapter, trace=trace, usage_tracker=tracker):
                prediction = within(_longest(lm), partial(self.predict, lm=lm, config=self.config, **given))
        except AbandonedError:
            raise
        except BaseException as error:
            self.enter(lm, tracker)
            if isinstance(error, AdapterParseError):
                self.refuse_truncated(lm)
            raise
        self.enter(lm, tracker)
        self.refuse_truncated(lm)
        writable(prediction)
        if dspy.settings.trace is not None:
            dspy.settings.trace.extend(trace)
        return prediction

    def enter(self, lm: dspy.BaseLM, tracker: _Tracker) -> None:
        """Enter what the request cost into the ledger; keep its reply."""
        for output in (output for entry in lm.history for output in entry.get("outputs") or []):
            self.reply = str(output.get("text") or "") if isinstance(output, dict) else str(output)
        enter(calls=[{**entry, "cached": not tracker.told} for entry in lm.history])

    def refuse_truncated(self, lm: dspy.BaseLM) -> None:
        """A cut reply is none, also where it parses."""
        if lm.history and _finish_reason(lm.history[-1].get("response")) == "length":
            raise _TruncatedError(int(self.config.get("max_tokens") or lm.kwargs.get("max_tokens") or 1024))


class _TruncatedError(Exception):
    def __init__(self, max_tokens: int):
        super().__init__(f"the reply was cut at {max_tokens} tokens; raise the LM's max_tokens")
        self.max_tokens = max_tokens


class _Tracker:
    """Learns whether a reply came from the server: DSPy tells of the usage of such ones alone, and of no others."""

    def __init__(self, outer: Any):
        self.outer, self.told = outer, False

    def add_usage(self, lm: str, usage: dict[str, Any]) -> None:
        """A reply came from the server."""
        self.told = True
        if self.outer is not None:
            self.outer.add_usage(lm, usage)


def _timeout(lm: dspy.BaseLM) -> dict[str, Any]:
    """Of each wait for the next bytes of a reply; nothing for an LM that has no connection of DSPy's."""
    if not _is_served(lm):
        return {}
    return {"timeout": limits().timeout or lm.kwargs.get("timeout") or TIMEOUT}


def _longest(lm: dspy.BaseLM) -> float:
    """Seconds to wait for a whole reply: a little more than its client does, and no longer than the question has."""
    if not _is_served(lm):
        return inf  # it runs in this process, and can neither dribble nor hang up
    timeout = lm.kwargs["timeout"]
    seconds = timeout if isinstance(timeout, (int, float)) else timeout.read or inf  # an httpx.Timeout
    return min(1.1 * seconds + 0.1, max(time_left(), 0.0))


def _is_served(lm: dspy.BaseLM) -> bool:
    return isinstance(getattr(lm, "engine", None), str)


def _finish_reason(response: Any) -> str | None:
    if hasattr(response, "finish_reason"):
        return str(response.finish_reason)
    choices = getattr(response, "choices", None)
    return str(choices[0].finish_reason) if choices else None
