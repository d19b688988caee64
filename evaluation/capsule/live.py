"""A capsule's questions, asked again of an LM of today: which answers differ, and from which step on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy
from pydantic import TypeAdapter

from ...common.errors import QuestreeError
from ...lm.account import Account
from ...lm.episode import EpisodeStep
from ...lm.policy import RunPolicy
from ...metrics import METRICS, metric
from ...programs.registry import REGISTRY
from ...retrieval import Passage, Retriever
from ...retrieval.base import WrappingRetriever
from ..evaluation import Evaluation, Paired
from ..identity import lm_facts
from ..kept_run import begin
from ..records import Record, ScoreFunction, example_of, score
from ..run import Progress, evaluate
from ..run_file import WritableFile, writing
from ..stored_runs import StoredRun, open_runs, steps_of
from .differences import Difference, changed, left, unasked
from .replay import adapter_of, program_of
from .stand_ins import is_trained

_PASSAGES = TypeAdapter(list[Passage])


@dataclass(frozen=True)
class AskedAgain:
    """A question then and now.

    Attributes:
        stored: its record in the capsule.
        record: its record now.
        first: the first step that differs; None if every prompt and every reply is the same.
    """

    stored: Record
    record: Record
    first: Difference | None

    @property
    def same(self) -> bool:
        """Return whether the answer is the same."""
        return self.stored.answer == self.record.answer and (self.stored.failure is None) == (
            self.record.failure is None
        )


@dataclass(frozen=True)
class Drift(Paired):
    """A run then and now.

    Attributes:
        name: of the run.
        models: the LM's name then and now.
        questions: in the order of the run.
    """

    name: str
    models: tuple[str, str]
    questions: tuple[AskedAgain, ...]


def replay_live(
    path: Path,
    out: Path,
    *,
    retriever: Retriever | None = None,
    policy: RunPolicy | None = None,
    seed: int = 0,
    allow_code: Iterable[str] = (),
    on_progress: Callable[[str, Progress], None] | None = None,
) -> list[Drift]:
    """Ask every question of a capsule again, of the configured LM and past its cache.

    A query that was searched then finds the passages of the capsule.

    Args:
        path: of the capsule.
        out: a folder for the runs; what is finished in it is not asked again.
        retriever: for the queries that the capsule does not hold; a question that has one fails without it.
        policy: see `evaluate`; its budget is that of all runs together.
        seed: of the intervals.
        allow_code: programs of other packages that the capsule may name, as ``package:name``.
        on_progress: called with the run's name and how far it is.

    Raises:
        RunFileError: if the capsule is damaged, or breaks a rule.
        QuestreeError: if no LM is configured, or a program needs something that a capsule does not hold.
    """
    if dspy.settings.lm is None:
        raise QuestreeError("No LM is configured; name one with --lm.")
    for name in allow_code:
        REGISTRY.allow(name)
    tell = on_progress or (lambda name, progress: None)
    lm, drifts = dspy.settings.lm.copy(cache=False), list[Drift]()
    for run in open_runs(path):  # all of them, before the first is paid for
        _check(run, retriever)
    with writing(out, "replay") as file, Account(file).open():
        for run in open_runs(path):
            with dspy.context(lm=lm, adapter=adapter_of(run)):
                drifts.append(_asked_again(run, file, retriever, policy, seed, tell))
    return drifts


def _asked_again(
    run: StoredRun,
    file: WritableFile,
    retriever: Retriever | None,
    policy: RunPolicy | None,
    seed: int,
    tell: Callable[[str, Progress], None],
) -> Drift:
    name, metrics = run.name, _metrics_of(run)
    examples = [example_of(record) for record in run.records]
    program = program_of(run, retriever=_searches(run, retriever), reader=None, duplicates=None)
    kept = begin(file, name, program, "", policy)
    after = evaluate(
        program,
        examples,
        metrics,
        out=kept,
        seed=seed,
        policy=policy,
        on_progress=lambda progress: tell(name, progress),
    )
    then = tuple(
        score(record.model_copy(update={"scores": {}}), example, metrics)
        for record, example in zip(run.records, examples, strict=True)
    )
    return Drift(
        before=Evaluation(after.metric, then, simulated=run.simulated, seed=seed),
        after=after,
        name=name,
        models=(str(run.part("lm").get("name")), str(lm_facts()["name"])),
        questions=tuple(
            AskedAgain(stored, now, first_difference(run.steps(now.id), steps_of(file, kept.number, now.id)))
            for stored, now in zip(run.records, after.records, strict=True)
        ),
    )


def first_difference(then: Sequence[EpisodeStep], now: Sequence[EpisodeStep]) -> Difference | None:
    """Return the first step of a question whose prompt, reply or passages differ; None if there is none."""
    stored, made = ({one.place: one for one in exchanges} for exchanges in (then, now))
    last: EpisodeStep | None = None
    for number, place in enumerate(sorted({*stored, *made}), start=1):
        was, is_ = stored.get(place), made.get(place)
        if is_ is None:
            return unasked(stored[place], number)
        if was is None or (was.kind, was.name) != (is_.kind, is_.name):
            return left(is_, was, last, number)
        if _shown(was) != _shown(is_):
            return changed(was, is_, number)
        if _said(was) != _said(is_):
            text = f"{_said(was)}\n→\n{_said(is_)}"
            return Difference(place=place, by=was.name, number=number, why="reply changed", text=text)
        last = was
    return None


def _shown(asked: EpisodeStep) -> object:
    """Return what an exchange asks; of a request the prompt alone, as each model has options of its own."""
    return asked.request.get("messages") if asked.kind == "request" else asked.request


def _said(asked: EpisodeStep) -> str:
    """Return what came back: the texts of replies, the ids of passages, or why there is nothing."""
    if asked.fault is not None:
        return f"{asked.fault.error}: {asked.fault.message}"
    came = asked.outcome if isinstance(asked.outcome, list) else [asked.outcome]
    named = {"request": "text", "search": "id"}.get(asked.kind, "")
    return "\n".join(str(one.get(named) if isinstance(one, Mapping) and named else one) for one in came)


def _metrics_of(run: StoredRun) -> list[ScoreFunction]:
    """Return the metrics that scored a run.

    Raises:
        QuestreeError: if none of them is known here.
    """
    metrics: list[ScoreFunction] = [metric(one) for one in run.records[0].scores if one in METRICS]
    if not metrics:
        raise QuestreeError(f"{run.name}: no metric that scored it is known here.")
    return metrics


def _check(run: StoredRun, retriever: Retriever | None) -> None:
    """Raise a QuestreeError if the run cannot be asked again: it needs something that is neither here nor packed."""
    adapter_of(run)
    _metrics_of(run)
    program_of(run, retriever=None, reader=None, duplicates=None)
    if is_trained(run.part("reader")) or run.part("duplicates"):
        raise QuestreeError(
            f"{run.name} used a trained reader or a check of duplicate queries, which no capsule holds; "
            "evaluate it again instead."
        )
    compared = any(one.kind == "comparison" for one in _all_steps(run))
    if compared and (retriever is None or retriever.similarity is None):
        name = run.part("retriever")["name"]
        raise QuestreeError(f"{run.name} compares texts as {name} does; give it with --retriever.")


def _all_steps(run: StoredRun) -> Iterator[EpisodeStep]:
    return (step for record in run.records for step in run.steps(record.id))


def _searches(run: StoredRun, retriever: Retriever | None) -> Retriever | None:
    """Return a retriever that finds what the run found; None for a run without one."""
    facts = run.part("retriever")
    if not facts:
        return None
    return _KeptSearches(run, retriever, str(facts["name"]), str(facts["fingerprint"]))


class _KeptSearches(WrappingRetriever):
    """The passages that a capsule holds, by query; another retriever for other queries."""

    def __init__(self, run: StoredRun, retriever: Retriever | None, name: str, fingerprint: str):
        super().__init__([] if retriever is None else [retriever], name, fingerprint)
        self.found = {_query(one): one.outcome for one in _all_steps(run) if one.kind == "search" and one.fault is None}

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return the passages of each query, best first.

        Raises:
            QuestreeError: if the capsule holds none, and there is no other retriever.
        """
        return [self._one(query, k) for query in queries]

    def _one(self, query: str, k: int) -> list[Passage]:
        if (query, k) in self.found:
            return _PASSAGES.validate_python(self.found[query, k])
        if not self.members:
            raise QuestreeError(f"the capsule holds no passages for {query!r}; name an index with --retriever")
        return self.members[0](query, k)


def _query(search: EpisodeStep) -> tuple[object, object]:
    return search.request.get("query"), search.request.get("k")
