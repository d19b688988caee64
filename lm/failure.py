"""The failure of a question, with a cause by which failures are counted."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import dspy
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMProviderError,
    LMRateLimitError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedFeatureError,
)
from pydantic import BaseModel, ConfigDict

from ..common.errors import QuestreeError
from ..common.secrets import remember_address, remember_secrets, without_secrets
from .models import is_served
from .scope import scoped

Cause = Literal[
    "question",  # the question is empty or too long
    "unparsable",  # no reply was whole and could be parsed, after bounded retries
    "truncated",  # every reply was cut at the token limit
    "context-window",  # the prompt does not fit, even with its passages shortened
    "deadline",  # the question's time was over
    "unreachable",  # no answer from the LM's address, or a connection that broke
    "timeout",  # a request took too long, after bounded retries
    "rate-limit",
    "auth",  # a wrong or missing key, or no credit
    "refused",  # the LM's server rejected the request
    "server",  # the LM's server failed, or answered with something that is no reply
    "retrieval",  # the retriever failed
    "reader",  # the reader failed
    "error",  # a fault in a program, not in its inputs
]


class Where(BaseModel):
    """The place in a program at which a question failed.

    Only the texts of the prompt and of the reply are kept, never the request that carried them, and
    keys and addresses are taken out of these texts as well.

    Attributes:
        program: the program's name.
        step: the program's step (``chain_of_query``); if no LM call failed, the functions and the line that raised.
        predictor: the step's predictor (``plan``).
        prompt: the last prompt, shortened.
        reply: the last reply, shortened; empty if there was none.
    """

    model_config = ConfigDict(frozen=True)

    program: str = ""
    step: str = ""
    predictor: str = ""
    prompt: str = ""
    reply: str = ""


class Failure(BaseModel):
    """Why a question has no answer, and where in the program it failed."""

    model_config = ConfigDict(frozen=True)

    cause: Cause
    message: str
    where: Where | None = None

    def __str__(self) -> str:
        return f"{self.cause}: {self.message}"


class CallFailedError(Exception):
    """The failure of a call that a program needs; `Program` turns it into a failed prediction.

    Attributes:
        failure: for the prediction.
        predict: the predictor that was called; None if no LM call failed.
    """

    def __init__(self, cause: Cause, message: str):
        self.failure = Failure(cause=cause, message=without_secrets(message))
        super().__init__(str(self.failure))
        self.predict: dspy.Predict | None = None

    def add_where(self, **fields: str) -> None:
        """Add fields to the place of the failure."""
        where = (self.failure.where or Where()).model_copy(update=without_secrets(fields))
        self.failure = self.failure.model_copy(update={"where": where})


class CannotAskError(QuestreeError):
    """No question can be asked: there is no LM, no key, no server at the address, or no retriever.

    A call of a program raises it before the first reply. Where many questions are asked (`counting_failures`), each is
    a failed prediction instead.
    """

    def __init__(self, error: CallFailedError):
        cause = error.__cause__  # shows the caller's own address, which no record or page does
        why = first_line(cause) if isinstance(cause, LMError) else error.failure.message
        advice = ". Does the server run, and is its address right?" if error.failure.cause == "unreachable" else ""
        super().__init__(f"No question can be asked: {why}{advice}")


def counting_failures() -> AbstractContextManager[None]:
    """Return a context in which every failure is a failed prediction, for callers that count them and give up."""
    return scoped(counts_failures=True)


_CAUSES: list[tuple[type[LMError], Cause]] = [
    (LMAuthError, "auth"),
    (LMBillingError, "auth"),
    (LMConfigurationError, "auth"),
    (LMRateLimitError, "rate-limit"),
    (LMTimeoutError, "timeout"),
    (LMTransportError, "unreachable"),
    (LMInvalidRequestError, "refused"),
    (LMProviderError, "server"),
    (LMUnexpectedError, "server"),
]
PASSING: set[Cause] = {"rate-limit", "timeout", "unreachable", "server"}
"""Causes with which the same request may succeed later."""
NEVER_SENT = (LMConfigurationError, LMUnsupportedFeatureError)
"""Errors of requests that were not sent."""

# Servers' words for a prompt that is too long: OpenAI and vLLM, OpenAI's newer ones, llama.cpp, Ollama, TGI,
# Anthropic, Gemini, Mistral. Some send them with status 400, some with 413, 422 or 500.
_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum.{0,20}(tokens|context)|too (long|many tokens)"
    r"|exceeds?.{0,40}(tokens|context)|must be <= ?\d+|too large for model|longer than the model",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"timed? ?out", re.IGNORECASE)


def overflows(error: LMError) -> bool:
    """Return whether the prompt was too long, even if the client does not know the server's wording."""
    if isinstance(error, ContextWindowExceededError) or error.status == 413:
        return True
    rejected = isinstance(error, LMProviderError) and not isinstance(error, (LMRateLimitError, LMAuthError))
    return rejected and bool(_OVERFLOW.search(error.message))


def cause_of(error: LMError) -> Cause:
    """Return the cause of a question that fails with this error."""
    if isinstance(error, LMTransportError) and _TIMED_OUT.search(error.message):
        return "timeout"
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), "refused")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, shortened after secrets were removed, so that no part of one stays.

    For an LM's error it is the message alone: DSPy writes the model's name before it.
    """
    message = error.message if isinstance(error, LMError) else str(error)
    lines = (line.strip() for line in message.splitlines())
    return without_secrets(next(filter(None, lines), type(error).__name__))[:300]


def raised_in(error: BaseException) -> str:
    """Return the last three functions on the way to where an error was raised, with its file and line."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    names, last = " > ".join(place.name for place in places), places[-1]
    return f"{names} ({Path(last.filename).name}, line {last.lineno})"


def abridged(text: str, most: int) -> str:
    """Return the text, or its two ends with a note between them if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


_ADDRESSES = {"api_base", "base_url"}
_SHORTEST_ADDRESS = 8  # characters: a shorter secret would be found in any text
_SECRETS = {"api_key", "headers", "extra_headers", "default_headers"}


def remember_lm(lm: dspy.BaseLM) -> None:
    """Note the LM's key, headers and password as secrets."""
    for name in _SECRETS & lm.kwargs.keys():
        value = lm.kwargs[name]
        remember_secrets(*map(str, value.values() if isinstance(value, Mapping) else [value]))
    for address in filter(None, address_of(lm).split()):
        remember_address(address)


def address_of(lm: dspy.BaseLM) -> str:
    """Return the address of an LM's server; empty if nothing names one.

    It is the LM's own, or else the environment's for its provider: both variables, if both are set.
    """
    own = lm.kwargs.get("api_base") or lm.kwargs.get("base_url")
    if own is not None or not is_served(lm):
        return str(own or "")
    provider = str(lm.model).partition("/")[0].upper()
    return " ".join(filter(None, (os.environ.get(f"{provider}_{name}") for name in ("API_BASE", "BASE_URL"))))


def without_address(text: str, lm: dspy.BaseLM) -> str:
    """Return the text with "…" in place of the LM's address, and of every known secret.

    A server may repeat a key in its error message, or in what it sends for a reply.
    """
    for name in _ADDRESSES & lm.kwargs.keys():
        whole = str(lm.kwargs[name])
        address = urlsplit(whole)
        for part in (whole, address.netloc, address.netloc.rpartition("@")[2], address.hostname or ""):
            text = text.replace(part, "…") if len(part) >= _SHORTEST_ADDRESS else text
    return without_secrets(text)
