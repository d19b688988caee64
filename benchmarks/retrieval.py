"""Questree's retrievers beside stock bm25s: built and searched on one corpus, in one run.

    QUESTREE_DATA=data python benchmarks/retrieval.py hotpotqa --out retrieval-benchmark

Each contestant has a process of its own, one after the other, so that its peak memory is its own. Half of the questions
are asked one by one, half in batches of 32; all of them count for recall and overlap. What is built and measured stays
in the folder; without its NAME.json a contestant is asked again, without its NAME folder it is also built again.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from questree.data import Question, load_task
from questree.metrics import mean_interval, recall_at_k
from questree.metrics.found_passages import gold_names, names_as
from questree.retrieval import Passage, build_index, load_index, read_corpus

K, BATCH = 10, 32
Search = Callable[[Sequence[str]], list[list[str]]]
"""The ids of the ten best passages of each query."""


class Contestant(Protocol):
    """Builds its index in a folder, and searches what is there."""

    def build(self, passages: Sequence[Passage], folder: Path) -> None:
        """Index the passages."""

    def opened(self, passages: Sequence[Passage], folder: Path) -> Search:
        """The index of the same passages."""


class Ours:
    """As `questree index --kind` builds it, at its defaults."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def build(self, passages: Sequence[Passage], folder: Path) -> None:
        """Index them."""
        build_index(passages, folder / "index", kind=self.kind)

    def opened(self, passages: Sequence[Passage], folder: Path) -> Search:
        """Open it."""
        retriever = load_index(folder / "index")
        return lambda queries: [[passage.id for passage in found] for found in retriever.batch(list(queries), K)]


class PlainBM25s:
    """bm25s as its own examples use it, with the k1 and b of `--kind bm25`."""

    def build(self, passages: Sequence[Passage], folder: Path) -> None:
        """Index them."""
        import bm25s

        index = bm25s.BM25(k1=1.2, b=0.75)
        index.index(self._tokens([f"{passage.title} {passage.text}" for passage in passages]), show_progress=False)
        index.save(str(folder / "index"))

    def opened(self, passages: Sequence[Passage], folder: Path) -> Search:
        """Open it."""
        import bm25s

        index = bm25s.BM25.load(str(folder / "index"))

        def search(queries: Sequence[str]) -> list[list[str]]:
            found, _ = index.retrieve(self._tokens(queries), k=K, show_progress=False)
            return [[passages[position].id for position in row] for row in found]

        return search

    def _tokens(self, texts: Sequence[str]) -> Any:
        import bm25s

        return bm25s.tokenize(list(texts), stopwords="en", show_progress=False)


CONTESTANTS: dict[str, Contestant] = {
    "exact": Ours("exact"),
    "colbert (PLAID)": Ours("colbert"),
    "dense": Ours("dense"),
    "bm25": Ours("bm25"),
    "bm25s, stock": PlainBM25s(),
}


def measure(name: str, passages: Sequence[Passage], queries: Sequence[str], folder: Path) -> dict[str, Any]:
    """Build, open and ask: seconds, MB, ms a query, and what was found for each query in order."""
    built = folder / "built.json"
    if not built.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        built.write_text(json.dumps(measure_build(name, passages, folder)))
    search = CONTESTANTS[name].opened(passages, folder)
    search(["asked before the clock runs"])
    alone, together = queries[: len(queries) // 2], queries[len(queries) // 2 :]
    batches = [together[start : start + BATCH] for start in range(0, len(together), BATCH)]
    found_alone, seconds_alone = timed(lambda: [search([query])[0] for query in alone])
    found_together, seconds_together = timed(lambda: [found for batch in batches for found in search(batch)])
    return {
        **json.loads(built.read_text()),
        "ms_alone": 1000 * seconds_alone / len(alone),
        "ms_in_batches": 1000 * seconds_together / len(together),
        "found": found_alone + found_together,
    }


def measure_build(name: str, passages: Sequence[Passage], folder: Path) -> dict[str, float]:
    """Seconds, and MB of the process and of the index."""
    _, seconds = timed(lambda: CONTESTANTS[name].build(passages, folder))
    return {
        "build_seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "index_mb": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the seconds it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def table(results: dict[str, dict[str, Any]], questions: Sequence[Question], passages: Sequence[Passage]) -> str:
    """The Markdown table; the last column is the share of exact search's ten passages that are among the ten."""
    by_id = {passage.id: passage for passage in passages}
    lines = [
        "| retriever | build s | peak MB | index MB | ms a query | ms in batches of 32 | recall@5 | top-10 overlap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, of in results.items():
        found = [[by_id[id_] for id_ in ids] for ids in of["found"]]
        recall = mean_interval([recall_at_5(q, some) for q, some in zip(questions, found, strict=True)])
        both = zip(of["found"], results.get("exact", of)["found"], strict=True)
        overlap = fmean(len(set(ids) & set(exact)) / len(exact) for ids, exact in both) if "exact" in results else nan
        lines.append(
            f"| {name} | {of['build_seconds']:.0f} | {of['peak_mb']:,.0f} | {of['index_mb']:,.0f} | "
            f"{of['ms_alone']:.1f} | {of['ms_in_batches']:.1f} | {recall} | {overlap:.3f} |"
        )
    return "\n".join(lines) + "\n"


def recall_at_5(question: Question, found: Sequence[Passage]) -> float:
    """The share of the question's gold passages among the first five; of its gold titles, where only they are known."""
    gold = question.known_gold()
    return recall_at_k(names_as(found, gold), gold_names(gold, question.gold_titles), 5) or 0.0


def main() -> None:
    """Measure each contestant in a process of its own; then the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("task", help="with gold titles and a corpus")
    parser.add_argument("--out", type=Path, required=True, help="a folder; what is measured in it already is not again")
    parser.add_argument("--passages", type=int, help="only the corpus's first so many, to try it out")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--one", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    task = load_task(given.task)
    assert task.corpus is not None, f"{given.task} comes without a corpus"
    passages = list(islice(read_corpus(task.corpus), given.passages))
    there = {passage.title for passage in passages}
    questions = [q for split in task.questions.values() for q in split if q.gold_titles and there >= set(q.gold_titles)]
    if given.one:
        folder = given.out / given.one.replace(" ", "-")
        result = measure(given.one, passages, [question.question for question in questions], folder)
        folder.with_suffix(".json").write_text(json.dumps(result))
        return
    results = {}
    for name in given.only:
        file = (given.out / name.replace(" ", "-")).with_suffix(".json")
        if not file.is_file():
            subprocess.run([sys.executable, *sys.argv, "--one", name], check=True)
        results[name] = json.loads(file.read_text())
    text = f"{len(passages):,} passages, {len(questions)} questions\n\n{table(results, questions, passages)}"
    (given.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
