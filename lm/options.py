"""The options of an LM's requests: the call's own, those that its model takes, and those that its server refused."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from typing import Any

import dspy
from dspy.utils.exceptions import LMConfigurationError, LMError

from .adapters import ChatAdapter, ReplySchema
from .episode import is_replayed
from .failure import address_of, cause_of, overflows
from .models import facts_of, is_served
from .scope import scope, scoped
from .window import window_of

OPTIONS = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort", "rollout_id", "n")
"""Options of an LM that a reply may depend on."""
LARGEST_REPLY, LARGEST_REASONED = 4096, 16_000  # tokens of a reply, by default; with its reasoning
UNREADABLE = 2  # unreadable replies in the chat form, less the readable ones, after which a schema asks for JSON

_NAMES = {  # how servers name a refused option; of the last two, only our own values are left out
    "temperature": r"temperature|top_p",
    "stream": r"\bstream",
    "max_tokens": r"max_(\w+_)?tokens|the completion",
    "response_format": r"response.?format|schema|grammar|json.?mode|structured|guided",
}
_refused = set[tuple[str, str, str]]()  # an LM's address and model, and the option that its server refused
_unread = Counter[tuple[str, str]]()  # by LM: unreadable replies in the chat form, less the readable ones

logger = logging.getLogger(__name__)


class RequestOptions:
    """The options of the requests of one call.

    Attributes:
        config: the call's own; those of the LM and of the predictor stand behind them.
        without: the options that requests leave out.
    """

    def __init__(self, predict: dspy.Predict, config: dict[str, Any], lm: dspy.BaseLM, adapter: dspy.Adapter):
        self._predict, self._lm, self._adapter = predict, lm, adapter
        self._whom = address_of(lm), str(lm.model)
        self.config = _taken({**(scope().sampling or {}), **config}, lm)
        known = [] if is_replayed() else [name for name in _NAMES if (*self._whom, name) in _refused]
        self.without, self._sent = set(known), set[str]()

    @property
    def every(self) -> dict[str, Any]:
        """Return the options of the LM, of the predictor and of the call."""
        return {**self._lm.kwargs, **self._predict.config, **self.config}

    @property
    def described(self) -> dict[str, Any]:
        """Return how a reply is sampled, as a step tells it."""
        return options_of(self.every)

    @property
    def is_streamed(self) -> bool:
        """Return whether a reply may come piece by piece."""
        return "stream" not in self.without and not self.is_formless

    def of_request(self, is_stored: bool, is_streamed: bool) -> dict[str, Any]:
        """Return the options of a request: the call's without refused ones, and our own for the reply."""
        options = self.every
        sampling = {name: None for name in ("temperature", "top_p") if options.get(name) is not None}
        is_unbounded = not self.max_tokens and (is_stored or is_served(self._lm))
        had = {"temperature": sampling, "stream": is_stored or is_streamed, "max_tokens": is_unbounded}
        had["response_format"] = not options.get("response_format") and (is_stored or self.is_formless)
        self._sent = {name for name in had if had[name]} - self.without
        config = self.config | (sampling if "temperature" in self.without else {})  # None is not sent to the server
        config |= {"max_tokens": self.room} if "max_tokens" in self._sent else {}
        has_schema = "response_format" in self._sent and not is_stored
        return config | ({"response_format": ReplySchema(self._predict.signature)} if has_schema else {})

    def sample_anew(self, rollout: int, temperature: float) -> None:
        """Ask for another reply: past the cache, and not in a stream, in which some servers say less about a reply."""
        self.config |= _taken({"rollout_id": rollout, "temperature": temperature}, self._lm)
        self.without.add("stream")

    def widen(self, tokens: int) -> None:
        """Give the reply twice so many tokens, as far as they fit into half of the window."""
        name = "max_completion_tokens" if self._lm.kwargs.get("max_completion_tokens") else "max_tokens"
        self.config[name] = int(max(min(2 * tokens, self.window // 2), tokens))

    @property
    def is_formless(self) -> bool:
        """Return whether a schema is sent because the LM does not follow the chat form."""
        is_bad = isinstance(self._adapter, ChatAdapter) and is_served(self._lm) and _unread[self._whom] >= UNREADABLE
        return is_bad and "response_format" not in self.without

    def note_form(self, unread: int) -> None:
        """Add 1 for an unreadable reply, subtract 1 for a readable one, if the LM was asked for the chat form."""
        if isinstance(self._adapter, ChatAdapter) and "response_format" not in self._sent:
            _unread[self._whom] += unread
            if self.is_formless:
                _warn_no_form(self._whom[1])

    def is_refused(self, error: LMError) -> bool:
        """Return whether the server refuses an option of the last request by name; leave it out of later requests."""
        refuses = cause_of(error) == "refused" or error.status in (500, 501)
        named = {name for name in self._sent if refuses and re.search(_NAMES[name], error.message, re.IGNORECASE)}
        named &= {"max_tokens"} if overflows(error) else named  # such a message may repeat the whole request
        self.without |= named
        if not is_replayed():
            ask_without(self._lm, *named)
        if "temperature" in named:
            _warn_own_temperature(str(self._lm.model))
        return bool(named)

    @property
    def max_tokens(self) -> int | None:
        """Return the token limit of the reply; None if there is none."""
        return reply_tokens(self.every)

    @property
    def room(self) -> int:
        """Return our token limit for a reply without another one: an LM may write without end."""
        facts = facts_of(str(self._lm.model))
        most = LARGEST_REASONED if facts.get("supports_reasoning") else LARGEST_REPLY
        return int(min(most, facts.get("max_output_tokens") or most, self.window // 4 or 1))

    @property
    def window(self) -> float:
        """Return the LM's window in tokens; infinity if it is not known."""
        return window_of(self._lm) or inf


def reply_tokens(options: Mapping[str, Any]) -> int | None:
    """Return the token limit of a reply by an LM's options; None if there is none.

    DSPy uses another name for it if the LM is one of OpenAI's reasoning models.
    """
    most: int | None = options.get("max_completion_tokens") or options.get("max_tokens")
    return most


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an LM, or of a request, that a reply may depend on; None for one that is not given."""
    return {name: options.get(name) for name in OPTIONS} | {"max_tokens": reply_tokens(options)}


@contextmanager
def sampled(temperature: float, rollout: int) -> Iterator[None]:
    """Sample each reply in the block, of the configured LM and of predictors' own LMs.

    Args:
        temperature: above 0; a model that takes none samples at its own, and a warning says so.
        rollout: separates the replies from those to the same prompts in other runs, which the client's cache holds.
    """
    lm, how = dspy.settings.lm, {"temperature": temperature, "rollout_id": rollout}
    if lm is not None and not takes_temperature(str(lm.model)):
        _warn_own_temperature(str(lm.model))
    with scoped({"lm": None if lm is None else lm.copy(**_taken(how, lm))}, sampling=how):
        yield


def rollout_in_use() -> int:
    """Return the rollout in which replies are sampled; 0 outside of `sampled`."""
    own = (scope().sampling or {}).get("rollout_id")
    return own or (dspy.settings.lm.kwargs.get("rollout_id") if dspy.settings.lm else None) or 0


def ask_without(lm: dspy.BaseLM, *options: str) -> None:
    """Leave options that its server refuses out of an LM's requests: ``temperature``, ``stream``, ``max_tokens``."""
    _refused.update((address_of(lm), str(lm.model), option) for option in options)


@lru_cache(maxsize=64)
def takes_temperature(model: str) -> bool:
    """Return whether the model accepts a temperature: DSPy knows some that refuse all but their own."""
    try:
        dspy.LM(model, temperature=0.5)
    except LMConfigurationError:
        return False
    except ValueError:  # the name of an LM of another class, which `dspy.LM` refuses
        return True
    return facts_of(model).get("supports_sampling_params") is not False


def _taken(config: dict[str, Any], lm: dspy.BaseLM) -> dict[str, Any]:
    """Return the options of a call that the LM's model accepts; those that its server refuses are left out later."""
    refused = set() if takes_temperature(str(lm.model)) else {"temperature", "top_p"}
    return {name: value for name, value in config.items() if name not in refused}


@lru_cache
def _warn_no_form(model: str) -> None:
    logger.warning("%s does not keep the form of replies: from now on, a schema asks it for JSON.", model)


@lru_cache
def _warn_own_temperature(model: str) -> None:
    logger.warning("%s takes no temperature: it replies, and samples are drawn, at its own.", model)
