"""What indexes cost and find on one corpus: tables of docs/retrieval.md and docs/scale.md.

    QUESTREE_DATA=data python benchmarks/retrieval.py hotpotqa --out retrieval-benchmark
    python benchmarks/retrieval.py hotpotqa --out small --passages 5000 --only exact rerank:nbits=2 rerank:candidates=50

A contestant is a kind of `questree index`, with its settings. Each is built by that command, and searched in another
process, so that each has its own peak of memory. Half of the questions are asked one by one, half in batches of 32; all
of them count for recall and overlap. What is measured stays in the folder and is not measured again.
"""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from frame import begin, in_own_process, memory, options, run_questree, took

from questree.data import Question, load_task
from questree.evaluation.tables import markdown_of
from questree.metrics import mean_interval, recall_at_k
from questree.metrics.found_passages import gold_names, names_as
from questree.retrieval import Passage, load_index, read_corpus

K, BATCH = 10, 32
ALL = ["exact", "rerank", "colbert", "dense", "bm25"]


def main() -> None:
    """Measure each contestant; then the table."""
    parser = options(__doc__)
    parser.add_argument("task", help="with gold titles and a corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, help="only the corpus's first so many")
    parser.add_argument("--only", nargs="+", default=ALL, metavar="KIND[:NAME=VALUE,…]")
    given = begin(parser)
    task = load_task(given.task)
    assert task.corpus is not None, f"{given.task} comes without a corpus"
    passages = list(islice(read_corpus(task.corpus), given.passages))
    corpus = given.out / "corpus.jsonl"
    corpus.write_text("".join(f"{one.model_dump_json(include={'id', 'title', 'text'})}\n" for one in passages))
    there = {passage.title for passage in passages}
    questions = [q for split in task.questions.values() for q in split if q.gold_titles and there >= set(q.gold_titles)]
    results = {name: measured(name, corpus, [question.question for question in questions]) for name in given.only}
    print(
        f"{len(passages):,} passages, {len(questions)} questions\n\n{markdown_of(rows(results, questions, passages))}"
    )


def measured(name: str, corpus: Path, queries: list[str]) -> dict[str, Any]:
    """Build a contestant's index and search it, unless its figures are there."""
    index = corpus.with_name(name.replace(":", "-"))
    figures = index.with_suffix(".json")
    if not figures.exists():
        kind, _, settings = name.partition(":")
        chosen = [word for one in settings.split(",") if one for word in ("--set", one)]
        taken = run_questree("index", corpus, "--kind", kind, "--out", index, *chosen)
        size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
        built = {"build": taken.clock, "peak": taken.memory, "size": size}
        figures.write_text(json.dumps(built | in_own_process(search, index, queries)))
    found: dict[str, Any] = json.loads(figures.read_text())
    return found


def search(index: Path, queries: list[str]) -> dict[str, Any]:
    """Search an index alone and in batches; return MB, milliseconds a query, and what was found in order."""
    before, retriever = memory(), load_index(index)

    def ask(texts: list[str]) -> list[list[str]]:
        return [[passage.id for passage in found] for found in retriever.batch(texts, K)]

    ask(["asked before the clock runs"])
    alone, together = queries[: len(queries) // 2], queries[len(queries) // 2 :]
    batches = [together[first : first + BATCH] for first in range(0, len(together), BATCH)]
    found, one_by_one = took(lambda: [ask([query])[0] for query in alone])
    more, in_batches = took(lambda: [ids for batch in batches for ids in ask(batch)])
    return {
        "memory": memory("VmHWM") - before,
        "alone": 1000 * one_by_one.clock / len(alone),
        "together": 1000 * in_batches.clock / len(together),
        "found": found + more,
    }


def rows(
    results: dict[str, dict[str, Any]], questions: Sequence[Question], passages: Sequence[Passage]
) -> list[dict[str, str]]:
    """Return the table; its last column is the share of exact search's ten passages that are among the ten."""
    by_id = {passage.id: passage for passage in passages}
    table = []
    for name, of in results.items():
        recall = {k: mean_interval([recall_of(q, ids, by_id, k) for q, ids in zip(questions, of["found"], strict=True)])
                  for k in (5, 10)}  # fmt: skip
        exact = results.get("exact", of)["found"]
        overlap = fmean(len({*ids} & {*best}) / len(best) for ids, best in zip(of["found"], exact, strict=True))
        table.append(
            {
                "retriever": name,
                "build s": f"{of['build']:.0f}",
                "passages/s": f"{len(passages) / of['build']:,.1f}",
                "build MB": f"{of['peak']:,.0f}",
                "B a passage": f"{of['size'] / len(passages):,.0f}",
                "search MB": f"{of['memory']:,.0f}",
                "ms a query": f"{of['alone']:.1f}",
                "ms in 32s": f"{of['together']:.1f}",
                "recall@5": str(recall[5]),
                "recall@10": str(recall[10]),
                "top-10 overlap": f"{overlap:.3f}" if "exact" in results else "",
            }
        )
    return table


def recall_of(question: Question, ids: Sequence[str], by_id: dict[str, Passage], k: int) -> float:
    """Return the share of gold passages among the first k; of gold titles, where only they are known."""
    gold = question.known_gold()
    return recall_at_k(names_as([by_id[id] for id in ids], gold), gold_names(gold, question.gold_titles), k) or 0.0


if __name__ == "__main__":
    main()
