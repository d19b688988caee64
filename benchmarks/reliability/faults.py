"""Programs against servers at fault: no question is lost, no failure has a wrong cause, and every request is told."""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from unittest.mock import patch

import dspy

from questree.lm import retries as waiting
from questree.lm.failure import counting_failures
from questree.lm.limits import Limits, limited, limits
from questree.programs import PROGRAMS, Program, build
from questree.programs.written_questions import Chain, QuestionWriting
from questree.retrieval import Passage, Retriever
from questree.retrieval.serving.client import RemoteRetriever
from questree.retrieval.serving.remote_requests import RemoteSettings

from .faulty_lm import CAUSES, LM_FAULTS, faulty_lm
from .faulty_retriever import RETRIEVER_FAULTS, faulty_retriever
from .faulty_server import Fault, Schedule, refusing
from .server_dresses import server_dress_report
from .small_world import small_world
from .tally import Tally

TIMEOUT = 1.0  # seconds, so that a stall costs little; the servers answer in a few thousandths
RETRIES = 2
DEADLINE = 60.0
DRIPPING_DEADLINE = 8.0  # of a question whose retriever may drip: nothing else ends that


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Try every program against servers at fault."""
    of_lm, of_retriever = Tally(), Tally()
    for seed in range(given.seed, given.seed + given.schedules):
        fault_report(seed, tally=of_lm)
        retriever_report(seed, tally=of_retriever)
    yield "faults of the LM's server", of_lm
    yield "connections that the LM's server refuses", refusal_report()
    yield "faults of the retriever's server", of_retriever
    yield "LM servers in other dress", server_dress_report()


def fault_report(
    seed: int,
    programs: Sequence[str] = (*PROGRAMS, QuestionWriting.name),
    questions: Sequence[dspy.Example] | None = None,
    *,
    faults: Sequence[Fault] = LM_FAULTS,
    rate: float = 0.35,
    adapter: dspy.Adapter | None = None,
    tally: Tally | None = None,
) -> Tally:
    """Ask programs questions of a simulated LM whose server is at fault on the seed's schedule.

    Waits before retries take no time here; stalls take `TIMEOUT`.

    Args:
        seed: of the schedule.
        programs: by name; ``questions`` writes some of its own.
        questions: of the bundled task; its first three where None.
        faults: that the server gives.
        rate: share of the requests that meet one.
        adapter: that writes the prompts; DSPy's default where None.
        tally: to go on with.
    """
    tally = Tally() if tally is None else tally
    examples, retriever, engine = small_world()
    for name in programs:
        schedule = Schedule(faults, rate, seed)
        with faulty_lm(engine, schedule) as address, _asking(_served(address), DEADLINE, adapter):
            program = _built(name, retriever, examples)
            asked = [_ask(program, example, schedule, CAUSES, tally) for example in questions or examples[:3]]
        spent = [prediction.spent for prediction in asked if prediction is not None]
        told = sum(one.calls - one.cached + one.failed for one in spent)
        # of all questions together: a request that was given up may come to the server as the next one is asked
        if len(spent) == len(asked) and told != schedule.requests:
            tally.wrong.append(f"{name}: {schedule.requests} requests, and {told} told")
        tally.tried += schedule.met
    return tally


def _built(name: str, retriever: Retriever, examples: Sequence[dspy.Example]) -> Program:
    """Return a program; the one that writes questions has the passages that the answers stand in, for each of these."""
    if name != QuestionWriting.name:
        return build(name, {}, retriever=retriever)
    writing = QuestionWriting(retriever)
    for example in examples:
        found = [passage for title in example.gold_titles for passage in retriever(title, 1)]
        writing.chains[example.question] = Chain(tuple(found), "bridge", "dev")
    return writing


def refusal_report(programs: Sequence[str] = tuple(PROGRAMS)) -> Tally:
    """Ask programs a question each, with an address where every connection is refused."""
    tally = Tally()
    examples, retriever, _ = small_world()
    with refusing() as address, _asking(_served(f"{address}/v1"), DEADLINE):
        for name in programs:
            prediction = build(name, {}, retriever=retriever)(**examples[0].inputs())
            _count(f"{name}, {examples[0].id}", prediction, {"unreachable"}, tally)
            tally.tried["refused"] += prediction.spent.failed
            if prediction.spent.failed % (RETRIES + 1) or prediction.spent.calls:
                tally.wrong.append(f"{name}: {prediction.spent}")
    return tally


def retriever_report(
    seed: int,
    programs: Sequence[str] = tuple(PROGRAMS),
    *,
    faults: Sequence[Fault] = RETRIEVER_FAULTS,
    rate: float = 0.35,
    tally: Tally | None = None,
) -> Tally:
    """Ask the programs that search, with the retriever's server at fault in place of the LM's (see `fault_report`)."""
    tally = Tally() if tally is None else tally
    examples, index, engine = small_world()
    lm = dspy.LM("simulated/faults", engine=engine, cache=False, num_retries=0)
    settings = RemoteSettings(connect_seconds=TIMEOUT, answer_seconds=TIMEOUT, retries=RETRIES, longest_pause=0)
    causes = {fault.kind: frozenset({"retrieval", "deadline"}) for fault in faults}
    for name in (name for name in programs if PROGRAMS[name].searches):
        schedule = Schedule(faults, rate, seed)
        with faulty_retriever(index, schedule) as address, _asking(lm, DRIPPING_DEADLINE):
            remote = RemoteRetriever(address, settings=settings)
            for example in examples[:3]:
                _ask(build(name, {}, retriever=_Compared(remote, index, tally)), example, schedule, causes, tally)
            remote.close()
        tally.tried += schedule.met
    return tally


class _Compared(Retriever):
    """A retriever behind an address; its passages are compared with those of the index that it searches."""

    def __init__(self, remote: RemoteRetriever, index: Retriever, tally: Tally):
        self.name, self.fingerprint, self.remote = remote.name, remote.fingerprint, True
        self._remote, self._index, self._tally = remote, index, tally

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Search, and note passages that are not the index's own."""
        found = self._remote.batch(queries, k)
        if found != self._index.batch(queries, k):
            self._tally.wrong.append(f"other passages for {queries}")
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
    program: Program, example: dspy.Example, schedule: Schedule, causes: dict[str, frozenset[str]], tally: Tally
) -> dspy.Prediction | None:
    """Ask, and count; return None where the program raised."""
    asked, before, began = f"{program.name}, {example.id}", schedule.requests, time.monotonic()
    try:
        prediction = program(**example.inputs())
    except Exception as error:
        tally.found["questions"] += 1
        tally.wrong.append(f"{asked}: {type(error).__name__}: {error}")
        return None
    _count(asked, prediction, {cause for kind in schedule.log[before:] if kind for cause in causes[kind]}, tally)
    if time.monotonic() - began > (limits().deadline or inf) + 1:  # it is looked at between steps
        tally.wrong.append(f"{asked}: after its deadline")
    return prediction


def _count(asked: str, prediction: dspy.Prediction, causes: set[str], tally: Tally) -> None:
    """Count a question that may have failed under these causes, after what it met."""
    failure = prediction.failure
    tally.found["questions"] += 1
    tally.found["answered" if failure is None else "failed"] += 1
    if failure is not None and failure.cause not in causes:
        tally.wrong.append(f"{asked}: {failure}, and not {sorted(causes)}")
    elif failure is None and prediction.answer is None:
        tally.wrong.append(f"{asked}: no answer, and no failure")
