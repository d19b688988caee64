"""What a long run keeps: threads, descriptors and memory after every so many questions (Linux; simulated LM).

    python benchmarks/many_questions.py --questions 5000 --concurrency 16 --out runs/many
    python benchmarks/many_questions.py --questions 5000 --concurrency 1000 --event-loop --out runs/loop

The simulated LM is served by a process of its own, so that the run has a real client with its threads and connections.
The mini set's questions are asked again and again under other ids, without a cache, and each answer is kept in the
folder. Memory is what the process has in RAM; its slope is fitted to the second half, when everything is loaded.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import threading
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import dspy

import questree
from questree.data import MINI_CORPUS
from questree.evaluation.run import Progress, evaluate
from questree.lm.policy import RunPolicy
from questree.metrics import metric
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running


def main() -> None:
    """Ask, and print a line for every so many questions, and the slope of the memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--event-loop", action="store_true")
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    task = questree.load_task("mini")
    base = [question for part in task.questions.values() for question in part]
    asked = [base[number % len(base)].model_copy(update={"id": f"q{number}"}) for number in range(given.questions)]
    examples = [question.to_example() for question in asked]
    ours, theirs = get_context("spawn").Pipe()
    server = get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    dspy.configure(lm=dspy.LM("openai/simulated", api_base=ours.recv(), api_key="none", cache=False))
    program = questree.program(given.program, retriever=BM25Retriever.from_passages(read_corpus(MINI_CORPUS)))
    print("| questions | threads | descriptors | memory, MB |\n| --- | --- | --- | --- |", flush=True)
    kept: list[tuple[int, float]] = []

    def look(progress: Progress) -> None:
        if progress.done % given.every == 0:
            gc.collect()
            kept.append((progress.done, memory()))
            descriptors = len(os.listdir("/proc/self/fd"))
            print(f"| {progress.done:,} | {threading.active_count()} | {descriptors} | {kept[-1][1]:.0f} |", flush=True)

    policy = RunPolicy(concurrency=given.concurrency, event_loop=given.event_loop)
    found = evaluate(program, examples, metric("by-style"), out=given.out, policy=policy, on_progress=look)
    half = kept[len(kept) // 2 :]
    slope = statistics.linear_regression([done for done, _ in half], [size for _, size in half]).slope
    print(f"\n{found.spent.calls:,} LM calls; failed {sum(found.failures.values())}; {1000 * slope:.1f} KB a question")
    server.terminate()


def serve(told: Connection) -> None:
    """Serve the simulated LM until this process is ended; tell its address."""
    task = questree.load_task("mini")
    questions = [question for part in task.questions.values() for question in part]
    with running(SimulatedEngine(Mind(World(questions), Traits()))) as address:
        told.send(address)
        threading.Event().wait()


def memory() -> float:
    """Return the megabytes that this process has in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
