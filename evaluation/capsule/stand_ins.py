"""Stand-ins for the LM, retriever, reader and duplicate check of a replayed program: none is ever asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import dspy
from dspy.utils.exceptions import LMError

from ...common.errors import QuestreeError
from ...lm.failure import first_line
from ...programs.modules.reader import LMReader
from ...retrieval import Retriever
from ..stored_runs import StoredRun


def _refuse(*given: Any, **more: Any) -> NoReturn:
    raise AssertionError("a replay asks nothing outside the capsule")


class _Retriever(Retriever):
    """A retriever that has only a name and a fingerprint."""

    batch = staticmethod(_refuse)

    def __init__(self, facts: Mapping[str, Any], compares: bool):
        self.name, self.fingerprint = str(facts.get("name")), str(facts.get("fingerprint"))
        self.similarity = _refuse if compares else None


class _Reader:
    """A trained reader, or a check of duplicates by a model, that has only a name and a threshold."""

    read_many = None

    def __init__(self, facts: Mapping[str, Any]):
        self.name, self.threshold = str(facts.get("name")), facts.get("threshold")

    __call__ = _refuse


class _NoEngine:
    complete = close = staticmethod(_refuse)


def parts_of(run: StoredRun) -> dict[str, Any]:
    """Return the stand-ins for the retriever, the reader and the check of duplicates."""
    retriever, reader, duplicates = (run.part(name) for name in ("retriever", "reader", "duplicates"))
    return {
        "retriever": _Retriever(retriever, run.environment.compares) if retriever else None,
        "reader": _Reader(reader) if is_trained(reader) else None,
        "duplicates": _Reader(duplicates) if duplicates else None,
    }


def is_trained(reader: Mapping[str, Any]) -> bool:
    """Return whether these facts are those of a trained reader, not of the LM."""
    return bool(reader) and reader.get("name") != LMReader.name


def lm_of(run: StoredRun) -> dspy.LM | None:
    """Return an LM with the name and options of the run's LM; None if the run had none.

    Raises:
        QuestreeError: no LM can have these options.
    """
    facts = run.part("lm")
    name = str(facts.get("name", "none"))
    if name == "none":
        return None
    options = {key: value for key, value in facts.items() if key not in ("name", "simulated", "adapter")}
    given = {"engine": _NoEngine(), "cache": False, "num_retries": run.environment.retries}
    try:
        return dspy.LM(**{**options, **given, "model": name})
    except (TypeError, ValueError, LMError) as problem:
        raise QuestreeError(f"{name} cannot have the options of this run: {first_line(problem)}.") from problem
