"""What a longer query window finds, and what it costs: the tables of docs/retrieval.md, "Long queries".

    python benchmarks/query_window.py DATA

DATA is a folder with `recorded.jsonl`, questions with what a real model was recorded to say of them, and
`corpora/musique.jsonl`; without them nothing is measured. The queries are BlendFilter's, made by its own code with the
recorded model as the LM. The external query answers from what BM25 finds in the whole corpus.

So that it takes minutes, ColBERT searches only the gold passages and those that BM25 ranks highest for these queries,
whole and as each window cuts them: otherwise the passages that mislead one of them would be missing. With --random it
searches so many others in their place, which are easier to tell from the gold ones.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import dspy
import torch
from recorded_gold import rows_with_gold
from scale import machine

from questree.data import Question, load_task
from questree.metrics import mean_interval, paired_interval, passage_names, recall_at_k
from questree.programs.modules.knowledge import QueryBlending
from questree.retrieval import BM25Retriever, Passage, Retriever, build_index, load_index, read_corpus
from questree.retrieval.late_interaction.checkpoint import embedded_checkpoint, find_checkpoint
from questree.retrieval.late_interaction.encoder import Encoder
from questree.simulate import recorded_lm

RECORDED, CORPUS = "recorded.jsonl", "corpora/musique.jsonl"
WINDOWS, LENGTHS = (32, 64, 256), (32, 64, 128, 256, 512)
QUESTIONS, K = 80, 5
WORDS = 79
"""Of the text that stands before the two questions whose embeddings are compared."""
TIMES = 5


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help=f"a folder with {RECORDED} and {CORPUS}")
    parser.add_argument("--random", type=int, metavar="N", help="search N random passages beside the gold ones")
    given = parser.parse_args()
    data: Path = given.data
    if missing := [name for name in (RECORDED, CORPUS) if not (data / name).is_file()]:
        parser.error(f"{data} has no {' and no '.join(missing)}: there is nothing to measure with.")
    began = time.perf_counter()
    corpus = list(read_corpus(data / CORPUS))
    with TemporaryDirectory() as work:
        file = Path(work) / "questions.jsonl"
        file.write_text("\n".join(rows_with_gold(data / RECORDED, data / CORPUS, "musique")), encoding="utf-8")
        dspy.configure(lm=recorded_lm(file))
        task = load_task(file, corpus=data / CORPUS)
    questions = [*task.split("dev"), *task.split("test")][:QUESTIONS]
    bm25 = BM25Retriever.from_passages(corpus)
    queries = blended(questions, bm25)
    gold = {title for question in questions for title in question.gold_titles}
    others = [passage for passage in corpus if passage.title not in gold]
    beside = random.Random(0).sample(others, given.random) if given.random else near(queries, bm25)
    ids = {passage.id for passage in beside}
    passages = [passage for passage in corpus if passage.title in gold or passage.id in ids]
    print(f"{machine()}; {len(passages):,} of {len(corpus):,} passages\n", flush=True)
    with TemporaryDirectory() as work:
        exact = load_index(build_index(passages, Path(work) / "index", kind="exact"))
        print(recall_table(questions, queries, exact), flush=True)
        folders = {"embedded": None, "of ColBERTv2's size": write_large(Path(work) / "large")}
        encoders = {name: Encoder.load(find_checkpoint(one), precision="float32") for name, one in folders.items()}
        print(cost_table(encoders, questions, " ".join(passage.text for passage in passages[:20])))
    print(f"{time.perf_counter() - began:.0f} s")


@cache
def tokenizer(**special: str) -> Any:
    """Return the tokenizer of both encoders: BERT's, uncased."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(embedded_checkpoint(), **special)


def count_tokens(text: str) -> int:
    """Return how many tokens a query has: its own, [CLS], [SEP] and the marker that colbert-ai puts in."""
    return len(tokenizer()(text, verbose=False)["input_ids"]) + 1


def cut(text: str, window: int) -> str:
    """Return as much of a query as an encoder of this window reads."""
    places = tokenizer()(text, truncation=True, max_length=window - 1, return_offsets_mapping=True)["offset_mapping"]
    return text[: max(end for _, end in places)]


def blended(questions: Sequence[Question], bm25: Retriever) -> dict[str, list[str]]:
    """Return the queries of each kind, one for each question."""
    first, last = QueryBlending(question_first=True), QueryBlending(question_first=False)
    found = [(one, bm25(one.question, K)) for one in questions]
    return {
        "the question alone": [one.question for one in questions],
        "internal, question last": [last.internal(one.question) for one in questions],
        "internal, question first": [first.internal(one.question) for one in questions],
        "external, question last": [last.external(one.question, one.style, passages) for one, passages in found],
        "external, question first": [first.external(one.question, one.style, passages) for one, passages in found],
    }


def near(queries: dict[str, list[str]], bm25: Retriever) -> list[Passage]:
    """Return the five passages that BM25 finds for each query in each window; some come several times."""
    read = [cut(one, window) for asked in queries.values() for one in asked for window in WINDOWS]
    return [passage for found in bm25.batch(read, K) for passage in found]


def recall_table(questions: Sequence[Question], queries: dict[str, list[str]], retriever: Retriever) -> str:
    """Return recall@5 of each kind of query by window, and the paired difference of the widest to the narrowest."""
    heads = [f"window {window}" for window in WINDOWS]
    lines = [
        f"| query | tokens: median, most | {' | '.join(heads)} | {WINDOWS[-1]} less {WINDOWS[0]} |",
        "|---|---|" + "---|" * (len(WINDOWS) + 1),
    ]
    for kind, asked in queries.items():
        scores = [recalls(questions, retriever.batch([cut(one, window) for one in asked], K)) for window in WINDOWS]
        tokens = [count_tokens(one) for one in asked]
        cells = [kind, f"{median(tokens):.0f}, {max(tokens)}", *map(mean_interval, scores)]
        lines.append(f"| {' | '.join(map(str, cells))} | {paired_interval(scores[0], scores[-1])} |")
    return "\n".join(lines) + "\n"


def recalls(questions: Sequence[Question], found: Sequence[Sequence[Passage]]) -> list[float]:
    """Return recall@5 for each question, by passage."""
    both = zip(questions, found, strict=True)
    return [recall_at_k(passage_names(of, one.gold_passages), one.gold_passages, K) or 0.0 for one, of in both]


def write_large(folder: Path) -> Path:
    """Write a checkpoint of ColBERTv2's size and settings with random weights; return its folder."""
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config, dim = BertConfig(), 128  # BERT-base, uncased: 12 layers of 768, 512 positions
    weights = {f"bert.{name}": tensor.contiguous() for name, tensor in BertModel(config).state_dict().items()}
    weights["linear.weight"] = torch.randn(dim, config.hidden_size) / config.hidden_size**0.5
    folder.mkdir()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    tokenizer(mask_token="[MASK]").save_pretrained(folder)
    settings = {"dim": dim, "doc_maxlen": 180, "query_maxlen": 32, "mask_punctuation": True}
    (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


def cost_table(encoders: dict[str, Encoder], questions: Sequence[Question], text: str) -> str:
    """Return by window what it takes to encode a query that fills it, and whether two long queries differ.

    Args:
        encoders: by the names of the columns.
        questions: the first two of them end the two long queries.
        text: longer than every window; its beginning is what both long queries begin with.
    """
    pair = [f"{' '.join(text.split()[:WORDS])} {question.question}" for question in questions[:2]]
    heads = [f"{name}: ms a query | {name}: two long queries" for name in encoders]
    lines = [f"| window | {' | '.join(heads)} |", "|---|" + "---|---|" * len(encoders)]
    for window in LENGTHS:
        cells = [f"{encoding_time(one, cut(text, window))} | {compare(one, pair, window)}" for one in encoders.values()]
        lines.append(f"| {window} | {' | '.join(cells)} |")
    tokens = ", ".join(str(count_tokens(one)) for one in pair)
    return "\n".join(lines) + f"\n\nThe two long queries: {WORDS} words and a question, {tokens} tokens.\n"


def encoding_time(encoder: Encoder, query: str) -> str:
    """Return the median and the range of the milliseconds that a query takes, alone."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        encoder.queries([query])
        taken.append(1000 * (time.perf_counter() - began))
    return f"{median(taken):.0f} [{min(taken):.0f}, {max(taken):.0f}] (n={TIMES})"


def compare(encoder: Encoder, pair: Sequence[str], window: int) -> str:
    """Return whether two queries have the same embeddings in this window."""
    one, other = encoder.queries([cut(query, window) for query in pair])
    return "the same" if torch.equal(one, other) else "differ"


if __name__ == "__main__":
    main()
