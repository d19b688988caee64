"""The frozen scope in which a question is asked: its limits, deadline, steps, account and listener.

It is a setting of DSPy, as these reach every place that DSPy's LM reaches: our threads, tasks of an event loop, and
DSPy's own threads, which inherit no other context. The process has a scope too (`limit_process`).
Each module reads the fields that it writes; this one imports none of their classes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import inf
from typing import Any, NamedTuple


class Scope(NamedTuple):
    """The scope of the code that runs here.

    Attributes:
        limits: of a question and of a request (`Limits`); None where nobody set any.
        until: the time, by `limits.clock`, at which the question or the request has to end.
        episode: takes the steps of the question (`Episode`); None outside of a question.
        place: the place under which the next steps are counted (`episode.Place`).
        source: gives the outcomes of a replay (`episode.Source`).
        listener: is told what happens to the question (`progress.Listener`).
        traced: the question whose id names its trace (`evaluation.traces.Traced`).
        account: counts what LM calls take (`Account`).
        meter: measures the LM call that is on its way (`Meter`).
        sampling: the LM's options for sampling each reply (`options.sampled`).
        server: the address of the LM that is asked, part of the key of kept replies; None outside of our calls.
        counts_failures: whether the caller counts failed questions (`counting_failures`).
        is_apart: whether this is one of a question's tasks that run at the same time.
    """

    limits: Any = None
    until: float = inf
    episode: Any = None
    place: tuple[int, ...] = ()
    source: Any = None
    listener: Any = None
    traced: Any = None
    account: Any = None
    meter: Any = None
    sampling: dict[str, Any] | None = None
    server: str | None = None
    counts_failures: bool = False
    is_apart: bool = False


_SETTING = "questree"
_OUTSIDE = Scope()


def scope() -> Scope:
    """Return the scope of the code that runs here."""
    import dspy  # imported here, as the command line reads the limits for its options without DSPy

    try:  # a call reads it some twenty times
        found: Scope = getattr(dspy.settings, _SETTING)
    except AttributeError:
        return _OUTSIDE
    return found


def scoped(settings: dict[str, Any] | None = None, /, **changes: Any) -> AbstractContextManager[None]:
    """Return a context with changed fields of the scope, and with these settings of DSPy."""
    import dspy

    context: AbstractContextManager[None] = dspy.context(**(settings or {}), **{_SETTING: scope()._replace(**changes)})
    return context


def scope_process(new: Scope) -> None:
    """Set the scope of code outside of all such contexts, as ``dspy.configure`` sets its LM."""
    import dspy

    dspy.configure(**{_SETTING: new})
