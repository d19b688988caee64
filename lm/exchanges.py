"""What a question asks of the world outside its program, and what comes back: LM requests, searches, comparisons."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ..common.manifests import json_hash

Place = tuple[int, ...]
"""Where a step stands among all steps of a question: tuples sort as the program asks."""

Kind = Literal["request", "search", "comparison", "reading"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fault(_Part):
    """Why nothing came back.

    Attributes:
        error: the class of DSPy's error for a request; for everything else, the cause of the question's failure.
        message: what was said of it.
        status: of the HTTP reply, if there was one.
    """

    error: str
    message: str
    status: int | None = None


class Reply(_Part):
    """A reply of the LM.

    Attributes:
        text: of the reply; None if it had none.
        reasoning: what the model wrote before it, if the server tells.
        finish: why the reply ended.
        tokens_in, tokens_out: as the server counts them; None where it does not, or where the client's cache replied.
        cost: in US dollars, if the client knows the model's price.
        cached: whether the client's cache replied.
    """

    text: str | None
    reasoning: str = ""
    finish: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    cached: bool = False


class Spent(BaseModel):
    """LM calls of one question, and what they took.

    A server saw ``calls - cached + failed`` requests, except those whose connection was refused: they count as failed.

    Attributes:
        calls: LM calls that got a reply, including those answered from the cache and those repeated.
        cached: calls that the client answered from its cache.
        failed: requests without a reply: turned away (429, 5xx), timed out, broken off, or rejected.
        tokens_in: prompt tokens of the calls that were not cached, as the server counts them.
        tokens_out: tokens of their replies.
        words_in: words of all prompts (SearChain, section 4.3.5).
        words_out: words of all replies.
        cost: in US dollars, if the client knows the model's price.
        estimated: calls whose tokens the server did not count: they are estimated, and their cost with them.
    """

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    cached: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    words_in: int = 0
    words_out: int = 0
    cost: float = 0.0
    estimated: int = 0


class Dropped(BaseModel):
    """What was left out of a prompt so that it fits the LM's window.

    Attributes:
        call: the signature's name.
        passages: the beginnings of the passages that were left out, in their order.
        cut: whether the only passage that remained was shortened.
    """

    model_config = ConfigDict(frozen=True)

    call: str
    passages: tuple[str, ...] = Field(default=())
    cut: bool = False


class Took(_Part):
    """What LM calls took that are part of another exchange, as a reranker's are of a search.

    Attributes:
        spent: calls that got a reply, and what they took.
        failed: the cause of each request that got none.
        dropped: what was left out of prompts.
    """

    spent: Spent
    failed: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Exchange(_Part):
    """One thing that was asked, and what came of it.

    Attributes:
        place: among all steps of the question.
        kind: a request to the LM, a search, a comparison of texts, or a reading by a trained reader.
        by: the name of the prompt, the retriever or the reader.
        asked: all that the outcome may depend on, as JSON: the prompt and how to sample; the query and k.
        came: the outcome as JSON, for a request a list of `Reply`; None if there was none.
        fault: why there was none.
        took: what LM calls took that are part of it; None if there were none.
    """

    place: Place
    kind: Kind
    by: str
    asked: dict[str, JsonValue]
    came: JsonValue = None
    fault: Fault | None = None
    took: Took | None = None

    @property
    def digest(self) -> str:
        """Return a digest of what was asked, and by whom."""
        return json_hash([self.kind, self.by, self.asked])[:16]

    def ended(self, came: Any = None, fault: Fault | None = None, took: Took | None = None) -> Exchange:
        """Return the exchange with its outcome."""
        return self.model_copy(update={"came": came, "fault": fault, "took": took})
