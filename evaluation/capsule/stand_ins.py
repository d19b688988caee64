"""What stands in a replayed program in the place of LM, retriever, reader and duplicate check: none is ever asked."""

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
    """A retriever by its name and fingerprint alone."""

    batch = staticmethod(_refuse)

    def __init__(self, facts: Mapping[str, Any], compares: bool):
        self.name, self.fingerprint = str(facts.get("name")), str(facts.get("fingerprint"))
        self.similarity = _refuse if compares else None


class _Reader:
    """A trained reader by its name and threshold, or a check of duplicates by a model."""

    read_many = None

    def __init__(self, facts: Mapping[str, Any]):
        self.name, self.threshold = str(facts.get("name")), facts.get("threshold")

    __call__ = _refuse


class _NoEngine:
    complete = close = staticmethod(_refuse)


def parts_of(run: StoredRun) -> dict[str, Any]:
    """Return what stands in the place of the retriever, the reader and the check of duplicates."""
    retriever, reader, duplicates = (run.part(name) for name in ("retriever", "reader", "duplicates"))
    return {
        "retriever": _Retriever(retriever, run.environment.compares) if retriever else None,
        "reader": _Reader(reader) if is_trained(reader) else None,
        "duplicates": _Reader(duplicates) if duplicates else None,
    }


def is_trained(reader: Mapping[str, Any]) -> bool:
    """Return whether what is told of a reader is of one that is not the LM."""
    return bool(reader) and reader.get("name") != LMReader.name


def lm_of(run: StoredRun) -> dspy.LM | None:
    """Return an LM of the name that the run's had, for the options of its requests; None if the run had none.

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
