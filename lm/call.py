"""One LM call, from a predictor's inputs to a whole, parsed reply, or to a failure with a cause."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from time import perf_counter
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError, LMInvalidRequestError, LMServerError
from pydantic_core import PydanticUndefined

from ..common.event_loop import on_loop
from ..signatures.answers import describe_style
from .adapters import lenient, prompt_of
from .episode import Dropped, begin_step, end_step, is_replayed
from .failure import (
    PASSING,
    CallFailedError,
    Cause,
    abridged,
    address_of,
    cause_of,
    first_line,
    overflows,
    remember_lm,
    without_address,
)
from .guard import adapter_in_use, guarded, make_writable, shown_demonstrations
from .kept_replies import watch_cache
from .limits import check_deadline, latest_end, limits, time_left
from .models import is_served
from .options import RequestOptions
from .parallel import within
from .progress import can_send, check_followed, listener, told_call
from .replies import end_of, fault_of, finish_reason, replies_of, stored_lm
from .scope import scope
from .spent import Meter, Spent, metered, total
from .transport import use_our_connection
from .window import Drop, drop_passage, fit

ATTEMPTS = 3  # attempts to get a usable reply
_MOST_REPLIES = 100  # attempts including cached replies, as an LM may say that all its replies are cached
RETRY_TEMPERATURE = 0.7  # at 0 the client's cache, and most models, would return the same bad reply again
SHORTENINGS = 4  # times that a prompt is shortened, if it should fit the window but the server finds it too long
TIMEOUT = 120.0  # seconds of a request, if neither the limits nor the LM name any
LONGEST_PROMPT, LONGEST_REPLY = 6000, 3000  # characters that a failure keeps

logger = logging.getLogger(__name__)


def call(
    predict: dspy.Predict,
    config: dict[str, Any] | None = None,
    *,
    drop: Drop = "last",
    writing: Callable[[], Any] | None = None,
    **inputs: Any,
) -> dspy.Prediction:
    """Call a predictor and return its reply, once a whole reply was parsed.

    Before a request, passages are left out of a prompt that may not fit the LM's window. After a request that
    gave no usable reply, another one is sent, a bounded number of times and within the question's deadline:

    - a reply that cannot be parsed: above temperature 0 and past the cache;
    - a reply that broke off, or that a filter ended: likewise;
    - a reply that was cut at the token limit: also with twice the room;
    - no reply (429, 5xx, a broken connection, a timeout): the same request after a wait;
    - a prompt that the server finds too long: with a passage less, or with the only passage halved;
    - the server refuses by name a temperature, a stream, our token limit or our schema of the reply: without that
      option, from then on.

    An LM that does not follow the chat form is sent the schema of its reply (``response_format``).

    Args:
        predict: the predictor.
        config: options of the LM for this call, such as a temperature to sample at.
        drop: which of the ``passages`` is left out first.
        writing: makes the receiver of a reply's pieces (``send``), if there is a listener.
        inputs: the predictor's fields.

    Raises:
        CallFailedError: with the cause, if no attempt gave a whole, parsable reply or the LM cannot be reached.
    """
    try:
        made = _Call(predict, dict(config or {}), drop, describe_style(inputs), writing)
        with told_call(made.name, lambda: total(made.spent)):
            return made.run()
    except CallFailedError as error:
        error.predict = predict
        raise


class _Call:
    """One call, with its attempts."""

    def __init__(self, predict: dspy.Predict, config: dict[str, Any], drop: Drop, inputs: dict[str, Any], writing: Any):
        lm = predict.lm or dspy.settings.lm
        if lm is None:
            raise CallFailedError("auth", "no LM is configured; dspy.configure(lm=dspy.LM(...)) or pass --lm")
        remember_lm(lm)
        watch_cache()
        self.predict, self.drop, self.inputs, self.lm = predict, drop, inputs, lm
        self.adapter = lenient(adapter_in_use())
        self.options = RequestOptions(predict, config, lm, self.adapter)
        self.name, self.writing = str(predict.signature.__name__), writing
        self.replies = self.attempts = self.retries = self.shortenings = 0
        self.rollout = self.options.config.get("rollout_id") or lm.kwargs.get("rollout_id") or 0
        self.cut: _CutReplyError | None = None
        self.cached, self.last_reply = False, ""
        self.spent, self.dropped = list[Spent](), list[Dropped]()

    def run(self) -> dspy.Prediction:
        """Send requests until a reply can be used, or no further request is allowed."""
        try:
            while True:
                check_deadline(self.name)
                check_followed()
                bound = self.options.max_tokens
                self.leave_out(*fit(self.predict, self.inputs, self.lm, self.adapter, bound, self.drop))
                try:
                    reply = self.request()
                    reply._shown = self.inputs.get("passages")  # no field: demonstrations are made of fields
                    return reply
                except (AdapterParseError, _PartialReplyError) as error:
                    self.ask_for_another(error)
                except LMError as error:
                    if self.options.is_refused(error):
                        continue
                    if overflows(error):
                        self.shorten(error)
                    else:
                        self.wait(error)
        except CallFailedError as error:
            prompt, reply = (without_address(text, self.lm) for text in (self.prompt(), self.last_reply))
            error.add_where(prompt=abridged(prompt, LONGEST_PROMPT), reply=abridged(reply, LONGEST_REPLY))
            raise

    def request(self) -> dspy.Prediction:
        """Send one request, or look into the cache; return the reply if it is whole and can be parsed."""
        inputs, demos, messages = self.shown()
        begun, stored = begin_step("request", self.name, self.described(messages))
        dropped, self.dropped, began = tuple(self.dropped), [], perf_counter()
        # The copy shares the connection. Its history, usage and trace are those of this request alone.
        lm = stored_lm(self.lm, stored) if stored else self.lm.copy(num_retries=0, **_timeout(self.lm))
        meter, trace = None if stored else Meter(lm, messages), list[Any]()
        settings = {"adapter": self.adapter, "trace": trace}
        streams = self.options.is_streamed
        if dspy.settings.send_stream and not (can_send() and streams):
            settings["send_stream"] = None
        if streams and self.writing and listener() and on_loop() and not (stored or dspy.settings.send_stream):
            settings |= {} if scope().is_apart else {"send_stream": self.writing()}  # writes one reply at a time
        failed: BaseException | None = None
        stream = settings.get("send_stream", dspy.settings.send_stream)
        config = self.options.of_request(stored is not None, stream is not None)
        use_our_connection(lm, self.predict.config | config)
        try:
            with metered(meter, settings, server=address_of(lm), until=latest_end(seconds := _patience(lm))):
                given = {"lm": lm, "config": config, "demos": demos, **inputs}
                if on_loop():
                    without_thread = partial(self.predict.acall, **given) if _is_awaited(lm) else None
                    reply = within(seconds, partial(self.predict, **given), without_thread)
                else:  # on a thread, the connection enforces the deadline
                    reply = self.predict(**given)
            if lm.history and not lm.history[-1].get("outputs"):
                raise LMServerError("no reply: it has no choices", model=lm.model)
        except AdapterParseError as error:
            self.options.note_form(unread=int(not error.parsed_result))  # not in the chat form, even if it was cut
            self.refuse_partial(lm)
            self.options.note_form(unread=int(bool(error.parsed_result)))
            raise
        except BaseException as error:
            failed = error
            raise
        finally:
            history = list(lm.history)
            spent = meter.end(history, failed) if meter else stored.spent if stored else Spent()
            self.spent.append(spent)
            self.cached = spent.cached > 0
            replies = replies_of(history) or None
            self.last_reply = next((str(one["text"] or "") for one in reversed(replies or [])), self.last_reply)
            fault = fault_of(failed) if isinstance(failed, LMError) else None
            end_step(begun, outcome=replies, fault=fault, spent=spent, dropped=dropped, seconds=perf_counter() - began)
        self.refuse_partial(lm)
        self.options.note_form(unread=-1)
        make_writable(reply)
        if dspy.settings.trace is not None:  # traced only now, as a reply that was cut must not become a demonstration
            dspy.settings.trace.extend(trace)
        return reply

    def leave_out(self, inputs: dict[str, Any], dropped: Dropped | None) -> None:
        """Take these inputs from now on; note what was dropped from them."""
        self.inputs = inputs
        self.dropped += [dropped] if dropped else []

    def refuse_partial(self, lm: dspy.BaseLM) -> None:
        """Reject a reply that is not whole, even if it can be parsed."""
        said = finish_reason(lm.history[-1].get("response")) if lm.history else None
        if (end := end_of(said)) == "length":
            raise _CutReplyError(self.options.max_tokens or self.options.room)
        if end == "content_filter":
            raise _PartialReplyError(
                f"the server ended the reply before it was whole: a filter, or a fault of its own ({said})"
            )

    def ask_for_another(self, error: AdapterParseError | _PartialReplyError) -> None:
        """Change the request so that it gets another reply; the same request would get the same one.

        A cached reply is no attempt: the replies that made a question fail are in the cache when it is asked again.
        """
        self.replies += 1
        self.attempts += not self.cached
        if self.attempts == ATTEMPTS or self.replies == _MOST_REPLIES:
            raise self.failed("truncated" if isinstance(error, _CutReplyError) else "unparsable", error) from error
        # each sample has its own rollout, so that the retries of two samples differ too
        self.options.sample_anew(self.rollout + self.replies, RETRY_TEMPERATURE)
        if isinstance(error, _CutReplyError):
            self.cut = error
            self.options.widen(error.max_tokens)

    def shorten(self, error: LMError) -> None:
        """Take a passage out of the request, because the server found it too long."""
        self.shortenings += 1
        shorter = drop_passage(self.predict, self.inputs, self.drop) if self.shortenings <= SHORTENINGS else None
        if shorter is None:
            raise self.failed("context-window", error) from error
        self.leave_out(*shorter)

    def wait(self, error: LMError) -> None:
        """Wait before the same request is sent again, if it may be."""
        self.retries += 1
        bound = limits().retries
        if self.cut and isinstance(error, LMInvalidRequestError):  # the raised limit is more than the model allows
            raise self.failed("truncated", self.cut) from error
        cause, most = cause_of(error), self.lm.num_retries if bound is None else bound
        if cause not in PASSING or self.retries > most:
            raise self.failed(cause, error) from error
        if is_replayed():  # the time is over already
            return
        from . import retries  # few requests are sent again

        seconds = retries.wait_before(self.retries, error)
        check_deadline(self.name, seconds, because=first_line(error))
        logger.info("%s again in %.1f s: %s", self.name, seconds, without_address(first_line(error), self.lm))
        retries.pause(seconds)

    def failed(self, cause: Cause, error: Exception) -> CallFailedError:
        """Return the failure of this call."""
        return CallFailedError(cause, without_address(f"{self.name}: {first_line(error)}", self.lm))

    def prompt(self) -> str:
        """Return the texts of the prompt that is sent, each after its role."""
        *_, messages = self.shown()
        return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)

    def shown(self) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the inputs, the demonstrations and the messages as they are sent."""
        fields = self.predict.signature.input_fields
        defaults = {name: one.default for name, one in fields.items() if one.default is not PydanticUndefined}
        inputs = guarded(defaults | self.inputs, self.predict.signature, self.adapter)
        demos = shown_demonstrations(self.predict, self.adapter) if self.predict.demos else []
        return inputs, demos, prompt_of(self.adapter, self.predict.signature, demos, inputs)

    def described(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the prompt, each message as its role and its text, and how its reply is sampled."""
        told = [[str(one["role"]), str(one["content"])] for one in messages]
        return {"messages": told, "options": self.options.described}


class _PartialReplyError(Exception):
    pass


class _CutReplyError(_PartialReplyError):
    def __init__(self, max_tokens: int):
        super().__init__(f"the reply was cut at {max_tokens} tokens; raise the LM's max_tokens")
        self.max_tokens = max_tokens


def _timeout(lm: dspy.BaseLM) -> dict[str, Any]:
    """Return the timeout of each wait for the next bytes of a reply; none for an LM without a connection."""
    if not is_served(lm):
        return {}
    return {"timeout": limits().timeout or lm.kwargs.get("timeout") or TIMEOUT}


def _patience(lm: dspy.BaseLM) -> float:
    """Return the seconds to wait for a whole reply: a little longer than the client, within the question's time."""
    if not is_served(lm):
        return inf  # it runs in this process, so it cannot send a few bytes and stall
    timeout = lm.kwargs["timeout"]
    seconds = timeout if isinstance(timeout, (int, float)) else timeout.read or inf  # an httpx.Timeout
    return min(1.1 * seconds + 0.1, max(time_left(), 0.0))


def _is_awaited(lm: dspy.BaseLM) -> bool:
    """Return whether DSPy can await the LM on an event loop: by its engine, or by a method of its class."""
    if not isinstance(getattr(lm, "engine", ""), str):
        return getattr(lm, "_async_engine_spec", None) is not None
    asked_by = next(kind for kind in type(lm).__mro__ if vars(kind).keys() & {"forward", "aforward"})
    return "aforward" in vars(asked_by)
