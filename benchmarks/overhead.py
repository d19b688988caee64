"""What we add to an LM's time: the share of its capacity that is used, and processor time beside bare dspy.Predict.

    python benchmarks/overhead.py --program searchain --questions 128

The LM takes half a second for each reply. Its replies are the simulated LM's, made beforehand, so that none of its work
is counted. The same prompts are asked at the same number in flight by `call`, our door for LM requests, and by bare
`dspy.Predict` in a process that never imported Questree. All run in turn, as the speed of a machine drifts; each figure
is the median of the runs, and a ratio that of the turns. A capacity of 100 % means: as many calls as fit into the LM at
so many in flight. The calls of a question wait for one another, so that the last questions run alone: "at most" is what
would be kept if nothing but the LM took time.
"""

import gc
import heapq
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

import bare_predict
import cloudpickle
import dspy
from bare_predict import SECONDS, MadeBeforehand, ask_on_threads, measured, use
from dspy.utils.callback import BaseCallback
from frame import begin, bundled_questions, bundled_retriever, options, simulated_engine

import questree
import questree.common
import questree.signatures
from questree.evaluation.run import evaluate
from questree.evaluation.tables import markdown_of
from questree.lm.account import Account
from questree.lm.call import call
from questree.lm.episode import episode
from questree.lm.limits import RunPolicy
from questree.metrics import metric

Run = Sequence[float]
"""LM calls, seconds by the clock, seconds of the processor."""


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
        asked = [record.spent.calls for record in evaluate(program, examples, metric("by-style")).records]
    rows = []
    gc.freeze()
    for most in given.in_flight:
        policy = RunPolicy(concurrency=most)
        run = partial(evaluate, program, examples, metric("by-style"), policy=policy)
        calls = partial(calls_in_account, prompts.asked, most)
        with bare(prompts.asked, engine.known, most) as alone:
            turns = [(alone(), measured(engine, calls), measured(engine, run)) for _ in range(given.runs)]
        rows.append(
            {
                "in flight": f"{most}",
                "capacity kept": f"{median(kept(whole, most) for _, _, whole in turns):.0%}",
                "at most": f"{at_most(asked, most):.0%}",
                "by bare `dspy.Predict`": f"{median(kept(theirs, most) for theirs, _, _ in turns):.0%}",
                "bare, CPU ms": f"{median(cpu(theirs) for theirs, _, _ in turns):.2f}",
                "a call": told([cpu(ours) / cpu(theirs) for theirs, ours, _ in turns]),
                "the whole run, by its calls": told([cpu(whole) / cpu(theirs) for theirs, _, whole in turns]),
            }
        )
    print(markdown_of(rows))


def calls_in_account(calls: bare_predict.Calls, most: int) -> None:
    """Make the calls by `call`, each counted by an account and kept as a step, as in a run."""

    def ask(predict: dspy.Predict, demos: Any = None, **inputs: Any) -> None:  # `call` shows the predictor's own
        with episode():
            call(predict, **inputs)

    with Account().open():
        ask_on_threads(calls, most, ask)


@contextmanager
def bare(calls: bare_predict.Calls, known: dict[Any, Any], most: int) -> Iterator[Callable[[], Run]]:
    """Yield what makes the same calls once by DSPy alone, and returns what they took."""
    for ours in (questree.signatures, questree.common):
        cloudpickle.register_pickle_by_value(ours)
    with TemporaryDirectory() as folder:
        path = Path(folder, "calls")
        path.write_bytes(cloudpickle.dumps((calls, known)))
        command = [sys.executable, bare_predict.__file__, str(path), str(most)]
        with Popen(command, stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
            asked, told = process.stdin, process.stdout
            assert asked is not None
            assert told is not None

            def once() -> Run:
                asked.write("\n")
                found: Run = json.loads(told.readline())
                return found

            yield once
            asked.close()


def told(ratios: Sequence[float]) -> str:
    """Return the median of the ratios, and their range."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def cpu(run: Run) -> float:
    """Return the milliseconds of the processor that a call took."""
    calls, _, processor = run
    return 1000 * processor / calls


def kept(run: Run, most: int) -> float:
    """Return the share of the LM's capacity that was used."""
    calls, clock, _ = run
    return calls * SECONDS / most / clock


def at_most(calls: Sequence[int], most: int) -> float:
    """Return the share of the LM's capacity that questions with so many calls keep if nothing else takes time."""
    free = [0] * most
    for number in calls:
        heapq.heapreplace(free, free[0] + number)
    return sum(calls) / most / max(free)


if __name__ == "__main__":
    main()
