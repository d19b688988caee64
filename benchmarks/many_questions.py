"""What a long run keeps: threads, descriptors and memory after every so many questions (Linux; simulated LM).

    python benchmarks/many_questions.py --questions 5000 --concurrency 16 --out runs/many
    python benchmarks/many_questions.py --questions 5000 --concurrency 1000 --event-loop --out runs/loop

The simulated LM is served by a process of its own, so that the run has a real client with its threads and connections.
The mini set's questions are asked again and again under other ids, without a cache, and each answer is kept in the
folder. The slope of the memory is fitted to the second half, when everything is loaded.
"""

import gc
import os
import statistics
import threading
from pathlib import Path

import dspy
from frame import begin, bundled_questions, bundled_retriever, memory, options, serve_lm, served

import questree
from questree.evaluation.run import Progress, evaluate
from questree.lm.limits import RunPolicy
from questree.metrics import metric


def main() -> None:
    """Ask, and print a line for every so many questions, and the slope of the memory."""
    parser = options(__doc__)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--event-loop", action="store_true")
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True)
    given = begin(parser)
    examples = [question.to_example() for question in bundled_questions(given.questions)]
    print("| questions | threads | descriptors | memory, MB |\n| --- | --- | --- | --- |", flush=True)
    kept: list[tuple[int, float]] = []

    def look(progress: Progress) -> None:
        if progress.done % given.every == 0:
            gc.collect()
            kept.append((progress.done, memory()))
            descriptors = len(os.listdir("/proc/self/fd"))
            print(f"| {progress.done:,} | {threading.active_count()} | {descriptors} | {kept[-1][1]:.0f} |", flush=True)

    policy = RunPolicy(concurrency=given.concurrency, event_loop=given.event_loop)
    with served(serve_lm) as address:
        dspy.configure(lm=dspy.LM("openai/simulated", api_base=address, api_key="none", cache=False))
        program = questree.program(given.program, retriever=bundled_retriever())
        found = evaluate(program, examples, metric("by-style"), out=given.out, policy=policy, on_progress=look)
    half = kept[len(kept) // 2 :]
    slope = statistics.linear_regression([done for done, _ in half], [size for _, size in half]).slope
    print(f"\n{found.spent.calls:,} LM calls; failed {sum(found.failures.values())}; {1000 * slope:.1f} KB a question")


if __name__ == "__main__":
    main()
