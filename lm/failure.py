"""How a question fails: a reason that is counted apart from a wrong answer."""

from __future__ import annotations

import re
from typing import Literal

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

Cause = Literal[
    "question",  # empty or overlong
    "unparsable",  # no reply could be parsed, after bounded retries
    "truncated",  # every reply was cut at the token limit
    "context-window",  # the prompt does not fit, even with its passages shortened
    "deadline",  # the question's time was over
    "unreachable",  # no answer from the LM's address, or a connection that broke
    "timeout",  # of one request, after bounded retries
    "rate-limit",
    "auth",  # a wrong or missing key, or no credit
    "refused",  # the LM's server rejected the request
    "server",  # the LM's server failed, or answered with something that is no reply
    "retrieval",  # the retriever failed
    "reader",  # the reader failed
    "error",  # a fault in a program, not in what it was given
]


class Failure(BaseModel):
    """Why a question has no answer."""

    model_config = ConfigDict(frozen=True)

    cause: Cause
    message: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.message}"


class CallFailedError(Exception):
    """A call that a program cannot go on without has failed; `Program` turns it into a failed prediction."""

    def __init__(self, cause: Cause, message: str):
        super().__init__(f"{cause}: {message}")
        self.failure = Failure(cause=cause, message=message)


class SettingsError(QuestreeError):
    """Settings that do not fit the parts that the program was given."""


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
_PASSING: set[Cause] = {"rate-limit", "timeout", "unreachable", "server"}
_NEVER_SENT = (LMConfigurationError, LMUnsupportedFeatureError)

# Servers' words for a prompt that is too long: OpenAI and vLLM, OpenAI's newer ones, llama.cpp, Ollama, TGI,
# Anthropic, Gemini, Mistral. Some send them with status 400, some with 413, 422 or 500.
_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum.{0,20}(tokens|context)|too (long|many tokens)"
    r"|exceeds?.{0,40}(tokens|context)|must be <= ?\d+|too large for model|longer than the model",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"timed? ?out", re.IGNORECASE)


def overflows(error: LMError) -> bool:
    """Whether the prompt was too long, also where the server's wording is unknown to the client."""
    if isinstance(error, ContextWindowExceededError) or error.status == 413:
        return True
    rejected = isinstance(error, LMProviderError) and not isinstance(error, (LMRateLimitError, LMAuthError))
    return rejected and bool(_OVERFLOW.search(error.message))


def cause_of(error: LMError) -> Cause:
    """The cause under which a question fails of it."""
    if isinstance(error, LMTransportError) and _TIMED_OUT.search(error.message):
        return "timeout"
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), "refused")


def may_pass(error: LMError) -> bool:
    """Whether the same request may do better in a while."""
    return cause_of(error) in _PASSING


def was_sent(error: LMError) -> bool:
    """Whether a request went out, or was at least tried to send."""
    return not isinstance(error, _NEVER_SENT)


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
