"""What we add to an LM's time: the share of its capacity that is used, and processor time beside bare dspy.Predict.

    python benchmarks/overhead.py --program searchain --questions 128

The LM takes half a second for each reply. Its replies are the simulated LM's, made beforehand, so that none of its work
is counted. The same prompts are asked by bare `dspy.Predict`, at the same number in flight, in a process that never
imported Questree. Each figure is the best of several runs: other work on the machine only adds. A capacity of 100 %
means: as many calls as fit into the LM at so many in flight. The calls of a question wait for one another, so that the
last questions run alone: "at most" is what would be kept if nothing but the LM took time.
"""

from __future__ import annotations

import argparse
import heapq
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import bare_predict
import cloudpickle
import dspy
from bare_predict import SECONDS, MadeBeforehand, Took, measured, use
from dspy.utils.callback import BaseCallback

import questree
import questree.common
import questree.signatures
from questree.data import MINI_CORPUS
from questree.evaluation.run import evaluate
from questree.lm.policy import RunPolicy
from questree.metrics import metric
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Mind, SimulatedEngine, Traits, World


class Prompts(BaseCallback):
    """Collects every call of a predictor."""

    def __init__(self) -> None:
        self.asked: bare_predict.Calls = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keep what a predictor is called with."""
        if type(instance) is dspy.Predict:
            given = inputs["kwargs"]
            self.asked.append((instance, {name: value for name, value in given.items() if name != "lm"}))


def main() -> None:
    """Print a table: threads and the event loop, at each number in flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--questions", type=int, default=128)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--runs", type=int, default=8)
    given = parser.parse_args()
    base = [question for part in questree.load_task("mini").questions.values() for question in part]
    asked = [base[number % len(base)].model_copy(update={"id": f"q{number}"}) for number in range(given.questions)]
    examples = [question.to_example() for question in asked]
    engine = MadeBeforehand({}, SimulatedEngine(Mind(World(base), Traits())).reply_to)
    use(engine)
    program = questree.program(given.program, retriever=BM25Retriever.from_passages(read_corpus(MINI_CORPUS)))
    prompts = Prompts()
    with dspy.context(callbacks=[prompts]):
        records = evaluate(program, examples, metric("by-style")).records
    calls = [record.spent.calls for record in records]
    print(
        "| in flight | on | capacity kept | at most | by bare `dspy.Predict` | CPU a call, ms | bare, ms | ratio |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for most in given.in_flight:
        both = bare(prompts.asked, engine.known, most, given.runs)
        for event_loop, alone in zip((False, True), both, strict=True):
            policy = RunPolicy(concurrency=most, event_loop=event_loop)
            ask = partial(evaluate, program, examples, metric("by-style"), policy=policy)
            ours = measured(engine, given.runs, ask)
            cpu, bare_cpu = lowest_cpu(ours), lowest_cpu(alone)
            print(
                f"| {most} | {'event loop' if event_loop else 'threads'} | {kept(ours, most):.0%} "
                f"| {at_most(calls, most):.0%} | {kept(alone, most):.0%} "
                f"| {cpu:.2f} | {bare_cpu:.2f} | {cpu / bare_cpu:.2f} |",
                flush=True,
            )


def bare(calls: bare_predict.Calls, known: dict[Any, Any], most: int, runs: int) -> list[list[Took]]:
    """Return what runs of the same calls take by DSPy alone: on threads, and on an event loop."""
    for ours in (questree.signatures, questree.common):
        cloudpickle.register_pickle_by_value(ours)
    with TemporaryDirectory() as folder:
        path = Path(folder, "calls")
        path.write_bytes(cloudpickle.dumps((calls, known)))
        command = [sys.executable, str(bare_predict.__file__), str(path), str(most), str(runs)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return [[Took(*one) for one in took] for took in found]


def lowest_cpu(runs: Sequence[Took]) -> float:
    """Return the least milliseconds of the processor that a call took."""
    return min(1000 * one.processor / one.calls for one in runs)


def kept(runs: Sequence[Took], most: int) -> float:
    """Return the greatest share of the LM's capacity that was used."""
    return max(one.calls * SECONDS / most / one.clock for one in runs)


def at_most(calls: Sequence[int], most: int) -> float:
    """Return the share of the LM's capacity that questions with so many calls keep if nothing else takes time."""
    free = [0] * most
    for number in calls:
        heapq.heapreplace(free, free[0] + number)
    return sum(calls) / most / max(free)


if __name__ == "__main__":
    main()
