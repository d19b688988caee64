"""The one frozen scope in which a question is asked: its limits, its time, its steps, and who is told of them.

It is a setting of DSPy's, since those go where its LM goes: onto threads of ours, into tasks of an event loop, and onto
threads that DSPy makes for itself, which take no other context along. The process has a scope too (`limit_process`).
Each module reads the fields that it writes; this one knows none of their classes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import inf
from typing import Any, NamedTuple


class Scope(NamedTuple):
    """What holds for the code that runs here.

    Attributes:
        limits: of a question and of a request (`Limits`); None where nobody set any.
        until: the time, by `limits.clock`, at which the question or the request has to end.
        episode: takes the steps of the question (`Episode`); None outside of a question.
        place: under which the next steps are counted (`episode.Place`).
        source: gives the outcomes of a replay (`episode.Source`).
        listener: is told what happens to the question (`progress.Listener`).
        traced: the question by whose id its trace is known (`evaluation.traces.Traced`).
        account: counts what LM calls take (`Account`).
        meter: measures the LM call that is on its way (`Meter`).
        sampling: options of the LM by which each reply is sampled (`call.sampled`).
        server: the address of the LM that is asked, by which replies are kept; None outside of our calls.
        counts_failures: whether whoever asks counts the questions that fail (`counting_failures`).
        is_apart: whether this is one of several tasks of a question that run at the same time.
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
    import dspy  # only now: the command line reads the limits for its options, without DSPy

    try:  # a call asks some twenty times
        found: Scope = getattr(dspy.settings, _SETTING)
    except AttributeError:
        return _OUTSIDE
    return found


def scoped(settings: dict[str, Any] | None = None, /, **changes: Any) -> AbstractContextManager[None]:
    """Return a context in which fields of the scope are changed, and settings of DSPy with them."""
    import dspy

    context: AbstractContextManager[None] = dspy.context(**(settings or {}), **{_SETTING: scope()._replace(**changes)})
    return context


def scope_process(new: Scope) -> None:
    """Set the scope of whatever runs outside of all blocks, as ``dspy.configure`` sets its LM."""
    import dspy

    dspy.configure(**{_SETTING: new})
