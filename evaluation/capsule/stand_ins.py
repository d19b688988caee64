"""What stands in for the parts of a program where a capsule is replayed, or its questions are asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import dspy
from dspy.utils.exceptions import LMError
from pydantic import TypeAdapter

from ...common.errors import QuestreeError
from ...lm.episode import EpisodeStep
from ...lm.failure import first_line
from ...programs.modules.reader import LMReader
from ...retrieval import Passage, Retriever, WrappingRetriever
from ..stored_runs import StoredRun

_PASSAGES = TypeAdapter(list[Passage])


def _refuse(*given: Any, **more: Any) -> NoReturn:
    raise AssertionError("a replay asks nothing outside the capsule")


class _StandInRetriever(Retriever):
    """A retriever that has only a name and a fingerprint."""

    batch = staticmethod(_refuse)

    def __init__(self, facts: Mapping[str, Any], compares: bool):
        self.name, self.fingerprint = str(facts.get("name")), str(facts.get("fingerprint"))
        self.similarity = _refuse if compares else None


class _StandInReader:
    """A trained reader, or a check of duplicates by a model, that has only a name and a threshold."""

    read_many = None

    def __init__(self, facts: Mapping[str, Any]):
        self.name, self.threshold = str(facts.get("name")), facts.get("threshold")

    __call__ = _refuse


class _NoEngine:
    complete = close = staticmethod(_refuse)


def stand_in_parts(run: StoredRun) -> dict[str, Any]:
    """Return the stand-ins for the retriever, the reader and the check of duplicates."""
    retriever, reader, duplicates = (run.part(name) for name in ("retriever", "reader", "duplicates"))
    return {
        "retriever": _StandInRetriever(retriever, run.environment.compares) if retriever else None,
        "reader": _StandInReader(reader) if is_trained(reader) else None,
        "duplicates": _StandInReader(duplicates) if duplicates else None,
    }


def is_trained(reader: Mapping[str, Any]) -> bool:
    """Return whether these facts are those of a trained reader, not of the LM."""
    return bool(reader) and reader.get("name") != LMReader.name


def stand_in_lm(run: StoredRun) -> dspy.LM | None:
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


class KeptSearches(WrappingRetriever):
    """The passages that a capsule holds, by query; another retriever for other queries."""

    def __init__(self, run: StoredRun, retriever: Retriever | None):
        facts = run.part("retriever")
        named = str(facts.get("name")), str(facts.get("fingerprint"))
        super().__init__([] if retriever is None else [retriever], *named)
        searches = (one for one in all_steps(run) if one.kind == "search" and one.fault is None)
        self.found = {(one.request.get("query"), one.request.get("k")): one.outcome for one in searches}

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return the passages of each query, best first; raise an error if there are none and no other retriever."""
        return [self._one(query, k) for query in queries]

    def _one(self, query: str, k: int) -> list[Passage]:
        if (query, k) in self.found:
            return _PASSAGES.validate_python(self.found[query, k])
        if not self.members:
            raise QuestreeError(f"the capsule holds no passages for {query!r}; name an index with --retriever")
        return self.members[0](query, k)


def all_steps(run: StoredRun) -> Iterator[EpisodeStep]:
    """Return what the questions of a run asked, each step."""
    return (step for record in run.records for step in run.steps(record.id))
