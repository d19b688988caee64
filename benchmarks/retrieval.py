"""Questree's retrievers beside stock colbert-ai and bm25s: built and searched on one corpus, in one run.

    QUESTREE_DATA=data python benchmarks/retrieval.py hotpotqa --out retrieval-benchmark

Each contestant has a process of its own, one after the other, so that its peak memory is its own. Half of the questions
are asked one by one, half in batches of 32; all of them count for recall and overlap.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

from questree.data import Question, load_task
from questree.metrics import mean_interval
from questree.retrieval import Passage, build_index, load_index, read_corpus

K, BATCH = 10, 32
Search = Callable[[Sequence[str]], list[list[str]]]
"""The ids of the ten best passages of each query."""


def of_kind(kind: str, passages: Sequence[Passage], folder: Path) -> Callable[[], Search]:
    """As `questree index --kind` builds it, at its defaults."""
    build_index(passages, folder / "index", kind=kind)

    def opened() -> Search:
        retriever = load_index(folder / "index")
        return lambda queries: [[passage.id for passage in found] for found in retriever.batch(list(queries), K)]

    return opened


def stock_colbert(passages: Sequence[Passage], folder: Path) -> Callable[[], Search]:
    """colbert-ai's own Indexer and Searcher on the same checkpoint, at the settings of `--kind colbert`."""
    from questree.retrieval import PlaidSettings
    from questree.retrieval.late_interaction.checkpoint import find_checkpoint
    from questree.retrieval.late_interaction.compat import colbert_ready, load_extensions

    load_extensions()
    with colbert_ready():
        from colbert import Indexer, Searcher
        from colbert.infra import ColBERTConfig, Run, RunConfig

    ours = PlaidSettings()
    run = RunConfig(nranks=1, root=str(folder), experiment="stock", avoid_fork_if_possible=True)
    config = ColBERTConfig(nbits=ours.nbits, kmeans_niters=ours.kmeans_iterations, avoid_fork_if_possible=True)
    with colbert_ready(), Run().context(run):
        indexer = Indexer(checkpoint=str(find_checkpoint(None).folder), config=config, verbose=0)
        indexer.index(name="index", collection=[passage.shown() for passage in passages], overwrite=True)

    def opened() -> Search:
        with colbert_ready(), Run().context(run):
            searcher = Searcher(index="index", verbose=0)

        def search(queries: Sequence[str]) -> list[list[str]]:
            return [[passages[position].id for position in searcher.search(query, k=K)[0]] for query in queries]

        return search

    return opened


def plain_bm25s(passages: Sequence[Passage], folder: Path) -> Callable[[], Search]:
    """bm25s as its own examples use it, with the k1 and b of `--kind bm25`."""
    import bm25s

    def tokens(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", show_progress=False)

    built = bm25s.BM25(k1=1.2, b=0.75)
    built.index(tokens([f"{passage.title} {passage.text}" for passage in passages]), show_progress=False)
    built.save(str(folder / "index"))

    def opened() -> Search:
        index = bm25s.BM25.load(str(folder / "index"))

        def search(queries: Sequence[str]) -> list[list[str]]:
            found, _ = index.retrieve(tokens(queries), k=K, show_progress=False)
            return [[passages[position].id for position in row] for row in found]

        return search

    return opened


CONTESTANTS: dict[str, Callable[[Sequence[Passage], Path], Callable[[], Search]]] = {
    "exact": lambda passages, folder: of_kind("exact", passages, folder),
    "colbert (PLAID)": lambda passages, folder: of_kind("colbert", passages, folder),
    "colbert-ai, stock": stock_colbert,
    "dense": lambda passages, folder: of_kind("dense", passages, folder),
    "bm25": lambda passages, folder: of_kind("bm25", passages, folder),
    "bm25s, stock": plain_bm25s,
}


def measure(name: str, passages: Sequence[Passage], queries: Sequence[str], folder: Path) -> dict[str, Any]:
    """Build, open and ask: seconds, MB, ms a query, and what was found for each query in order."""
    folder.mkdir(parents=True)
    opened, build_seconds = timed(lambda: CONTESTANTS[name](passages, folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    search = opened()
    search(["asked before the clock runs"])
    alone, together = queries[: len(queries) // 2], queries[len(queries) // 2 :]
    batches = [together[start : start + BATCH] for start in range(0, len(together), BATCH)]
    found_alone, seconds_alone = timed(lambda: [search([query])[0] for query in alone])
    found_together, seconds_together = timed(lambda: [found for batch in batches for found in search(batch)])
    return {
        "build_seconds": build_seconds,
        "peak_mb": peak,
        "index_mb": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
        "ms_alone": 1000 * seconds_alone / len(alone),
        "ms_in_batches": 1000 * seconds_together / len(together),
        "found": found_alone + found_together,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the seconds it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def table(results: dict[str, dict[str, Any]], questions: Sequence[Question], passages: Sequence[Passage]) -> str:
    """The Markdown table; the last column is the share of exact search's ten passages that are among the ten."""
    titles = {passage.id: passage.title for passage in passages}
    lines = [
        "| retriever | build s | peak MB | index MB | ms a query | ms in batches of 32 | recall@5 | top-10 overlap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, of in results.items():
        recall = mean_interval([recall_at_5(q, ids, titles) for q, ids in zip(questions, of["found"], strict=True)])
        both = zip(of["found"], results.get("exact", of)["found"], strict=True)
        overlap = fmean(len(set(ids) & set(exact)) / len(exact) for ids, exact in both) if "exact" in results else nan
        lines.append(
            f"| {name} | {of['build_seconds']:.0f} | {of['peak_mb']:,.0f} | {of['index_mb']:,.0f} | "
            f"{of['ms_alone']:.1f} | {of['ms_in_batches']:.1f} | {recall} | {overlap:.3f} |"
        )
    return "\n".join(lines) + "\n"


def recall_at_5(question: Question, found: Sequence[str], titles: dict[str, str]) -> float:
    """The share of the question's gold titles among the first five."""
    gold = set(question.gold_titles)
    return len(gold & {titles[id_] for id_ in found[:5]}) / len(gold)


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
