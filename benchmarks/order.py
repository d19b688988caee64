"""Tree of Reviews depth-first and level by level, with an LM that takes a fixed time for each call (simulated).

    python benchmarks/order.py --latency 0.5 --questions 15

A question in level order can take no less than its longest chain of calls: the reviews and completions from the root
to a leaf, and the fusion.
"""

from __future__ import annotations

import argparse
from statistics import fmean, median

import dspy

import questree
from questree.data import MINI_CORPUS
from questree.programs import ReasoningTree
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Traits, simulated_lm


def main() -> None:
    """Ask the same questions in both orders, one after the other, and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds a call")
    parser.add_argument("--questions", type=int, default=15)
    given = parser.parse_args()
    task = questree.load_task("mini")
    questions = [question for split in task.questions.values() for question in split]
    traits = Traits(latency=given.latency, malformed=0)
    dspy.configure(lm=simulated_lm(questions, traits, cache=False))
    retriever = BM25Retriever.from_passages(read_corpus(MINI_CORPUS))
    for order in ("depth-first", "level"):
        program = questree.program("tree-of-reviews", retriever=retriever, order=order)
        asked = [program(question=question.question) for question in task.split("dev")[: given.questions]]
        seconds = [one.seconds for one in asked]
        chains = [one.seconds / (given.latency * longest_chain(one.tree)) for one in asked]
        print(
            f"{order}: {fmean(seconds):.2f} s and {fmean(one.spent.calls for one in asked):.1f} calls a question; "
            f"time over its longest chain of calls: median {median(chains):.3f}, most {max(chains):.3f} "
            f"(n={len(asked)}, simulated)"
        )


def longest_chain(tree: ReasoningTree) -> int:
    """Calls that have to wait for one another: reviews and the completions that opened searches, and the fusion."""
    calls = [
        sum((step.review is not None) + (step.next_query is not None) for step in tree.path_to(node))
        for node in tree.nodes
    ]
    return 1 + max(calls, default=0)


if __name__ == "__main__":
    main()
