"""What a question asks of the world outside its program, and what comes back: LM requests, searches, comparisons."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

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


class Exchange(_Part):
    """One thing that was asked, and what came of it.

    Attributes:
        place: among all steps of the question.
        kind: a request to the LM, a search, a comparison of texts, or a reading by a trained reader.
        by: the name of the prompt, the retriever or the reader.
        asked: all that the outcome may depend on, as JSON: the prompt and how to sample; the query and k.
        came: the outcome as JSON, for a request a list of `Reply`; None if there was none.
        fault: why there was none.
    """

    place: Place
    kind: Kind
    by: str
    asked: dict[str, JsonValue]
    came: JsonValue = None
    fault: Fault | None = None

    @property
    def digest(self) -> str:
        """Return a digest of what was asked, and by whom."""
        return json_hash([self.kind, self.by, self.asked])[:16]

    def ended(self, came: Any = None, fault: Fault | None = None) -> Exchange:
        """Return the exchange with its outcome."""
        return self.model_copy(update={"came": came, "fault": fault})
