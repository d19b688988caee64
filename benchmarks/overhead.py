"""What we add to an LM's time: the share of its capacity that is used, and processor time beside bare dspy.Predict.

    python benchmarks/overhead.py --program searchain --questions 512

The LM takes half a second for each reply. Its replies are the simulated LM's, made beforehand, so that none of its work
is counted. Every row is a run of all questions, and then the same prompts by bare `dspy.Predict` at the same number in
flight, in the same process. A capacity of 100 % means: as many calls as fit into the LM at so many in flight. The calls
of a question wait for one another, so that the last questions run alone: "at most" is what would be kept if nothing but
the LM took time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any, NamedTuple

import dspy
from dspy.lm15 import Request, Response
from dspy.utils.callback import BaseCallback

import questree
from questree.data import MINI_CORPUS
from questree.evaluation.pools import Threads
from questree.evaluation.run import evaluate
from questree.lm.policy import RunPolicy
from questree.metrics import metric
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Mind, SimulatedEngine, Traits, World

SECONDS = 0.5


class MadeBeforehand:
    """Gives a simulated LM's replies after a while, each made once."""

    def __init__(self, lm: SimulatedEngine):
        self.lm, self.known, self.calls, self.seconds = lm, dict[Any, Response](), 0, 0.0

    def reply(self, request: Request) -> Response:
        """Return the reply to a request, made now if it was not made before."""
        self.calls += 1
        prompt = (request.system, *(message.text for message in request.messages))
        if prompt not in self.known:
            self.known[prompt] = self.lm.reply_to(request)
        return self.known[prompt]

    def complete(self, request: Request) -> Response:
        """Reply on a thread."""
        time.sleep(self.seconds)
        return self.reply(request)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


class MadeBeforehandAsync:
    """The same on an event loop."""

    def __init__(self, engine: MadeBeforehand):
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        """Reply on the event loop."""
        await asyncio.sleep(self.engine.seconds)
        return self.engine.reply(request)

    async def aclose(self) -> None:
        """Do nothing: nothing is held open."""


class Prompts(BaseCallback):
    """Collects every call of a predictor."""

    def __init__(self) -> None:
        self.asked: list[tuple[dspy.Predict, dict[str, Any]]] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keep what a predictor is called with."""
        if type(instance) is dspy.Predict:
            given = inputs["kwargs"]
            self.asked.append((instance, {name: value for name, value in given.items() if name != "lm"}))


class Took(NamedTuple):
    """What a run took: LM calls, seconds by the clock, seconds of the processor."""

    calls: int
    clock: float
    processor: float


def main() -> None:
    """Print a table: threads and the event loop, at each number in flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--questions", type=int, default=512)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    given = parser.parse_args()
    task = questree.load_task("mini")
    base = [question for part in task.questions.values() for question in part]
    asked = [base[number % len(base)].model_copy(update={"id": f"q{number}"}) for number in range(given.questions)]
    examples = [question.to_example() for question in asked]
    engine = MadeBeforehand(SimulatedEngine(Mind(World(base), Traits())))
    lm = dspy.LM("made/beforehand", engine=engine, async_engine=MadeBeforehandAsync(engine), cache=False)
    dspy.configure(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False))
    program = questree.program(given.program, retriever=BM25Retriever.from_passages(read_corpus(MINI_CORPUS)))
    prompts = Prompts()
    with dspy.context(callbacks=[prompts]):
        records = evaluate(program, examples, metric("by-style")).records
    calls = [record.spent.calls for record in records]
    gc.collect()
    gc.freeze()
    engine.seconds = SECONDS
    print(
        "| in flight | on | capacity kept | at most | by bare `dspy.Predict` | CPU a call, ms | bare, ms | ratio |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for most in given.in_flight:
        for event_loop in (False, True):
            policy = RunPolicy(concurrency=most, event_loop=event_loop)
            ours = measured(engine, partial(evaluate, program, examples, metric("by-style"), policy=policy))
            bare = measured(engine, partial(ask_bare, prompts.asked, most, event_loop))
            kept, bare_kept = (one.calls * SECONDS / most / one.clock for one in (ours, bare))
            cpu, bare_cpu = (1000 * one.processor / one.calls for one in (ours, bare))
            where = "event loop" if event_loop else "threads"
            print(
                f"| {most} | {where} | {kept:.0%} | {at_most(calls, most):.0%} | {bare_kept:.0%} "
                f"| {cpu:.2f} | {bare_cpu:.2f} | {cpu / bare_cpu:.2f} |",
                flush=True,
            )


def at_most(calls: Sequence[int], most: int) -> float:
    """Return the share of the LM's capacity that questions with so many calls keep if nothing else takes time."""
    free = [0] * most
    for number in calls:
        heapq.heapreplace(free, free[0] + number)
    return sum(calls) / most / max(free)


def measured(engine: MadeBeforehand, run: Callable[[], Any]) -> Took:
    """Return what a run takes."""
    before, clock, processor = engine.calls, time.perf_counter(), time.process_time()
    run()
    return Took(engine.calls - before, time.perf_counter() - clock, time.process_time() - processor)


def ask_bare(asked: list[tuple[dspy.Predict, dict[str, Any]]], most: int, event_loop: bool) -> None:
    """Make the same calls by DSPy alone, so many at a time."""
    if event_loop:
        asyncio.run(ask_on_loop(asked, most))
        return
    pool = Threads(most)
    wait([pool.start(ask_one, call) for call in asked])
    pool.end(at_once=False)


def ask_one(call: tuple[dspy.Predict, dict[str, Any]]) -> None:
    """Make one call; a reply that cannot be parsed raises, as it did before."""
    predict, given = call
    with dspy.context(trace=[]):
        predict(**given)


async def ask_on_loop(asked: list[tuple[dspy.Predict, dict[str, Any]]], most: int) -> None:
    """Make the calls on this event loop."""
    room = asyncio.Semaphore(most)

    async def one(predict: dspy.Predict, given: dict[str, Any]) -> None:
        async with room:
            with dspy.context(trace=[]):
                await predict.acall(**given)

    await asyncio.gather(*(one(*call) for call in asked), return_exceptions=True)


if __name__ == "__main__":
    main()
