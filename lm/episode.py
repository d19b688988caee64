"""The ordered steps of a question: each LM request, search, reading and comparison with its outcome.

What a question spent, found and left out of prompts is read from the steps, and so are its record and its replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from ..common.manifests import json_hash
from ..retrieval import Passage
from .adapters import type_adapter
from .failure import CallFailedError, Cause
from .scope import scope, scoped
from .spent import Spent, total

T = TypeVar("T")

Place = tuple[int, ...]
"""The position of a step in its question: tuples sort in the program's order."""

Kind = Literal["request", "search", "comparison", "reading"]


class _EpisodePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fault(_EpisodePart):
    """Why a step has no outcome.

    Attributes:
        error: the class of DSPy's error for a request; for everything else, the cause of the question's failure.
        message: the error's message.
        status: of the HTTP reply, if there was one.
    """

    error: str
    message: str
    status: int | None = None


class Dropped(_EpisodePart):
    """What was left out of a prompt so that it fits the LM's window.

    Attributes:
        call: the signature's name.
        passages: the beginnings of the passages that were left out, in their order.
        cut: whether the only passage that remained was shortened.
    """

    call: str
    passages: tuple[str, ...] = ()
    cut: bool = False


class EpisodeStep(_EpisodePart):
    """One LM request, search, comparison or reading of a question, and its outcome.

    Attributes:
        place: among all steps of the question.
        kind: a request to the LM, a search, a comparison of texts, or a reading by a trained reader.
        name: of the prompt, the retriever or the reader.
        request: all that the outcome may depend on, as JSON: the prompt and the sampling options; the query and k.
        outcome: as JSON; for an LM request, its replies (``text``, ``reasoning``, ``finish``); None if there is none.
        fault: why there is no outcome.
        spent: by this LM request, or by those that are part of the step, such as a reranker's in a search.
        dropped: what was left out of the prompts.
        seconds: that it took.
    """

    place: Place
    kind: Kind
    name: str
    request: dict[str, JsonValue]
    outcome: JsonValue = None
    fault: Fault | None = None
    spent: Spent = Spent()
    dropped: tuple[Dropped, ...] = ()
    seconds: float = 0.0

    @property
    def digest(self) -> str:
        """Return a digest of the request and of its receiver."""
        return json_hash([self.kind, self.name, self.request])[:16]


_STEP = EpisodeStep(place=(), kind="request", name="", request={})


@dataclass
class Episode:
    """The steps of a question; tasks that run at the same time add to it."""

    steps: list[EpisodeStep] = field(default_factory=list)
    places: Counter[Place] = field(default_factory=Counter)
    """How many places were given under each place."""

    @property
    def ordered(self) -> list[EpisodeStep]:
        """Return the steps in the order of the program, whichever thread was the fastest."""
        return sorted(self.steps, key=lambda step: step.place)

    @property
    def spent(self) -> Spent:
        """Return the sum of all steps."""
        return total(step.spent for step in self.steps)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Return what was left out of prompts."""
        return tuple(one for step in self.ordered for one in step.dropped)

    @property
    def found(self) -> list[list[Passage]]:
        """Return what each search found."""
        searches = [step for step in self.ordered if step.kind == "search" and step.fault is None]
        return [type_adapter(list[Passage]).validate_python(step.outcome) for step in searches]


@contextmanager
def episode() -> Iterator[Episode]:
    """Collect the steps inside the block, also those of threads that run in a copy of the context.

    On exit, even after an exception, an enclosing episode gets them, at their own places among its steps.
    """
    new, outer = Episode(), scope().episode
    try:
        with scoped(episode=new, place=next_place()):
            yield new
    finally:
        if outer is not None:
            outer.steps.extend(new.steps)


def next_place() -> Place:
    """Return the place of this thread's next step among all steps of the open episode."""
    current, under = scope().episode, here()
    if current is None:
        return under
    current.places[under] += 1
    return (*under, current.places[under])


def here() -> Place:
    """Return the place under which this context's steps are counted; each of several tasks has its own."""
    return scope().place


class Source(Protocol):
    """A source of stored outcomes for a replay."""

    def take(self, begun: EpisodeStep) -> EpisodeStep:
        """Return the stored step for one that has no outcome yet."""


def replaying(source: Source) -> AbstractContextManager[None]:
    """Return a context in which every outcome comes from a source: no LM, retriever or reader is asked."""
    return scoped(source=source)


def is_replayed() -> bool:
    """Return whether outcomes come from a source."""
    return scope().source is not None


def begin_step(kind: Kind, name: str, request: dict[str, Any]) -> tuple[EpisodeStep, EpisodeStep | None]:
    """Return a new step without its outcome and, in a replay, the stored one; else None."""
    # skips validation and copies of the defaults, which take long
    begun = _STEP.model_copy(update={"place": next_place(), "kind": kind, "name": name, "request": request})
    source: Source | None = scope().source
    return begun, None if source is None else source.take(begun)


def end_step(begun: EpisodeStep, **fields: Any) -> None:
    """Add a step with its outcome, fault, cost and what was dropped to the open episode, if there is one."""
    if (current := scope().episode) is not None:
        current.steps.append(begun.model_copy(update=fields))


def step(kind: Kind, name: str, request: dict[str, Any], outcome: Any, take: Callable[[], T]) -> T:
    """Take a step and return its outcome; in a replay, return the stored one.

    Args:
        kind, name, request: see `EpisodeStep`.
        outcome: the type of the outcome, which can be written as JSON.
        take: produces the outcome. LM requests inside are part of this step, not steps of their own.

    Raises:
        CallFailedError: that `take` raises, or in a replay raised then.
    """
    begun, stored = begin_step(kind, name, request)
    if stored is not None:
        end_step(stored)
        if stored.fault is not None:
            raise CallFailedError(cast("Cause", stored.fault.error), stored.fault.message)
        return cast("T", type_adapter(outcome).validate_python(stored.outcome))
    inside, kept, began = Episode(), dict[str, Any](), perf_counter()
    try:
        with scoped(episode=inside, place=()):
            taken = take()
        kept["outcome"] = type_adapter(outcome).dump_python(taken, mode="json")
        return taken
    except CallFailedError as error:
        kept["fault"] = Fault(error=error.failure.cause, message=error.failure.message)
        raise
    except Exception as error:  # a reader's own error: its caller turns it into the same failure
        kept["fault"] = Fault(error="reader", message=f"{type(error).__name__}: {error}")
        raise
    finally:
        end_step(begun, spent=inside.spent, dropped=inside.dropped, seconds=perf_counter() - began, **kept)
