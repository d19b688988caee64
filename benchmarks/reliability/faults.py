"""Programs against servers at fault: faults tried, questions lost, failures under a wrong cause, totals that differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from unittest.mock import patch

import dspy

from questree.lm import retries as waiting
from questree.lm.failure import counting_failures
from questree.lm.limits import Limits, limited, limits
from questree.programs import PROGRAMS, Program
from questree.programs.registry import build
from questree.retrieval import BaseRetriever, Passage, Retriever
from questree.retrieval.serving.client import RemoteRetriever
from questree.retrieval.serving.remote_requests import RemoteSettings

from .fault_counts import FaultCounts
from .faulty_lm import CAUSES, LM_FAULTS, faulty_lm
from .faulty_retriever import RETRIEVER_FAULTS, faulty_retriever
from .faulty_server import Fault, Schedule, refusing
from .small_world import small_world

TIMEOUT = 1.0  # seconds, so that a stall costs little; the servers answer in a few thousandths
RETRIES = 2
DEADLINE = 60.0
DRIPPING_DEADLINE = 8.0  # of a question whose retriever may drip: nothing else ends that


def fault_report(
    seed: int,
    programs: Sequence[str] = tuple(PROGRAMS),
    questions: Sequence[dspy.Example] | None = None,
    *,
    faults: Sequence[Fault] = LM_FAULTS,
    rate: float = 0.35,
    adapter: dspy.Adapter | None = None,
) -> FaultCounts:
    """Ask programs questions of a simulated LM whose server is at fault on the seed's schedule.

    Waits before retries take no time here; stalls take `TIMEOUT`.

    Args:
        seed: of the schedule.
        programs: by name.
        questions: of the bundled task; its first three where None.
        faults: that the server gives.
        rate: share of the requests that meet one.
        adapter: that writes the prompts; DSPy's default where None.
    """
    counts = FaultCounts()
    examples, retriever, engine = small_world()
    for name in programs:
        schedule = Schedule(faults, rate, seed)
        with faulty_lm(engine, schedule) as address, _asking(_served(address), DEADLINE, adapter):
            program = build(name, {}, retriever=retriever)
            asked = [_ask(program, example, schedule, CAUSES, counts) for example in questions or examples[:3]]
        _compare(name, asked, schedule.requests, counts)
        counts.faults += schedule.met
        counts.requests += schedule.requests
    return counts


def refusal_report(programs: Sequence[str] = tuple(PROGRAMS)) -> FaultCounts:
    """As `fault_report`, with a question each and an address where every connection is refused."""
    counts = FaultCounts()
    examples, retriever, _ = small_world()
    with refusing() as address, _asking(_served(f"{address}/v1"), DEADLINE):
        for name in programs:
            prediction = build(name, {}, retriever=retriever)(**examples[0].inputs())
            counts.add(f"{name}, {examples[0].id}", prediction, {"unreachable"})
            counts.faults["refused"] += prediction.spent.failed
            if prediction.spent.failed % (RETRIES + 1) or prediction.spent.calls:
                counts.differing.append(f"{name}: {prediction.spent}")
    return counts


def retriever_report(
    seed: int,
    programs: Sequence[str] = tuple(PROGRAMS),
    questions: Sequence[dspy.Example] | None = None,
    *,
    faults: Sequence[Fault] = RETRIEVER_FAULTS,
    rate: float = 0.35,
) -> FaultCounts:
    """As `fault_report`, of the programs that search, with the retriever's server at fault in place of the LM's.

    Passages that are not the index's own count as lost.
    """
    counts = FaultCounts()
    examples, index, engine = small_world()
    lm = dspy.LM("simulated/faults", engine=engine, cache=False, num_retries=0)
    settings = RemoteSettings(connect_seconds=TIMEOUT, answer_seconds=TIMEOUT, retries=RETRIES)
    causes = {fault.kind: frozenset({"retrieval", "deadline"}) for fault in faults}
    for name in programs:
        if not PROGRAMS[name].searches:
            continue
        schedule = Schedule(faults, rate, seed)
        with faulty_retriever(index, schedule) as address, _asking(lm, DRIPPING_DEADLINE):
            remote = RemoteRetriever.connect(address, settings=settings, wait=lambda seconds: None)
            for example in questions or examples[:3]:
                _ask(build(name, {}, retriever=_Compared(remote, index, counts)), example, schedule, causes, counts)
            remote.close()
        counts.faults += schedule.met
        counts.requests += schedule.requests
    return counts


class _Compared(BaseRetriever):
    """A retriever behind an address; its passages are compared with those of the index that it searches."""

    def __init__(self, remote: RemoteRetriever, index: Retriever, counts: FaultCounts):
        self.name, self.fingerprint, self.remote = remote.name, remote.fingerprint, True
        self._remote, self._index, self._counts = remote, index, counts

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        found = self._remote.batch(queries, k)
        if found != self._index.batch(queries, k):
            self._counts.lost.append(f"other passages for {queries}")
        return found


def _served(address: str) -> dspy.LM:
    return dspy.LM("openai/simulated", api_base=address, api_key="none", cache=False)


@contextmanager
def _asking(lm: dspy.LM, deadline: float, adapter: dspy.Adapter | None = None) -> Iterator[None]:
    bounds = Limits(timeout=TIMEOUT, retries=RETRIES, deadline=deadline)
    no_wait = patch.object(waiting, "sleep", lambda seconds: None)
    with no_wait, dspy.context(lm=lm, adapter=adapter), counting_failures(), limited(bounds):
        yield


def _ask(
    program: Program, example: dspy.Example, schedule: Schedule, causes: dict[str, frozenset[str]], counts: FaultCounts
) -> dspy.Prediction | None:
    """Ask, and count; None where the program raised."""
    asked, before, began = f"{program.name}, {example.id}", schedule.requests, time.monotonic()
    try:
        prediction = program(**example.inputs())
    except Exception as error:
        counts.questions += 1
        counts.lost.append(f"{asked}: {type(error).__name__}: {error}")
        return None
    met = [kind for kind in schedule.log[before:] if kind]
    counts.add(asked, prediction, {cause for kind in met for cause in causes[kind]})
    if time.monotonic() - began > (limits().deadline or inf) + 1:  # it is looked at between steps
        counts.late.append(asked)
    return prediction


def _compare(name: str, asked: list[dspy.Prediction | None], requests: int, counts: FaultCounts) -> None:
    """A program's questions together: a request that was given up may come to the server as the next one is asked."""
    spent = [prediction.spent for prediction in asked if prediction is not None]
    told = sum(one.calls - one.cached + one.failed for one in spent)
    if len(spent) == len(asked) and told != requests:
        counts.differing.append(f"{name}: {requests} requests, and {told} told")
