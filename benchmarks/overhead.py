"""What we add to an LM's time: the share of its capacity that is used, and processor time beside bare dspy.Predict.

    python benchmarks/overhead.py --program searchain --questions 128

The LM takes half a second for each reply. Its replies are the simulated LM's, made beforehand, so that none of its work
is counted. The same prompts are asked by bare `dspy.Predict`, at the same number in flight, in a process that never
imported Questree. Each figure is the best of several runs: other work on the machine only adds. A capacity of 100 %
means: as many calls as fit into the LM at so many in flight. The calls of a question wait for one another, so that the
last questions run alone: "at most" is what would be kept if nothing but the LM took time.
"""

import heapq
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import bare_predict
import cloudpickle
import dspy
from bare_predict import SECONDS, MadeBeforehand, measured, use
from dspy.utils.callback import BaseCallback
from frame import begin, bundled_questions, bundled_retriever, options, run_command, simulated_engine

import questree
import questree.common
import questree.signatures
from questree.evaluation.run import evaluate
from questree.evaluation.tables import markdown_of
from questree.lm.limits import RunPolicy
from questree.metrics import metric

Runs = Sequence[Sequence[float]]
"""Of each run: LM calls, seconds by the clock, seconds of the processor."""


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
    """Print a table, with a row for each number in flight."""
    parser = options(__doc__)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--questions", type=int, default=128)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--runs", type=int, default=8)
    given = begin(parser)
    examples = [question.to_example() for question in bundled_questions(given.questions)]
    engine = MadeBeforehand({}, simulated_engine().reply_to)
    use(engine)
    program = questree.program(given.program, retriever=bundled_retriever())
    prompts = Prompts()
    with dspy.context(callbacks=[prompts]):
        calls = [record.spent.calls for record in evaluate(program, examples, metric("by-style")).records]
    rows = []
    for most in given.in_flight:
        alone = bare(prompts.asked, engine.known, most, given.runs)
        policy = RunPolicy(concurrency=most)
        ours = measured(engine, given.runs, partial(evaluate, program, examples, metric("by-style"), policy=policy))
        cpu, bare_cpu = lowest_cpu(ours), lowest_cpu(alone)
        row = {
            "in flight": f"{most}",
            "capacity kept": f"{kept(ours, most):.0%}",
            "at most": f"{at_most(calls, most):.0%}",
        }
        row |= {"by bare `dspy.Predict`": f"{kept(alone, most):.0%}", "CPU a call, ms": f"{cpu:.2f}"}
        rows.append(row | {"bare, ms": f"{bare_cpu:.2f}", "ratio": f"{cpu / bare_cpu:.2f}"})
    print(markdown_of(rows))


def bare(calls: bare_predict.Calls, known: dict[Any, Any], most: int, runs: int) -> Runs:
    """Return what runs of the same calls take by DSPy alone."""
    for ours in (questree.signatures, questree.common):
        cloudpickle.register_pickle_by_value(ours)
    with TemporaryDirectory() as folder:
        path = Path(folder, "calls")
        path.write_bytes(cloudpickle.dumps((calls, known)))
        _, printed = run_command([sys.executable, bare_predict.__file__, str(path), str(most), str(runs)])
        found: Runs = json.loads(printed)
    return found


def lowest_cpu(runs: Runs) -> float:
    """Return the least milliseconds of the processor that a call took."""
    return min(1000 * processor / calls for calls, _, processor in runs)


def kept(runs: Runs, most: int) -> float:
    """Return the greatest share of the LM's capacity that was used."""
    return max(calls * SECONDS / most / clock for calls, clock, _ in runs)


def at_most(calls: Sequence[int], most: int) -> float:
    """Return the share of the LM's capacity that questions with so many calls keep if nothing else takes time."""
    free = [0] * most
    for number in calls:
        heapq.heapreplace(free, free[0] + number)
    return sum(calls) / most / max(free)


if __name__ == "__main__":
    main()
