"""Gather and rerank beside exact search, and at millions of passages: tables of docs/retrieval.md and docs/scale.md.

    python benchmarks/rerank.py quality DATA hotpotqa --exact INDEX --out FOLDER
    python benchmarks/rerank.py size DATA hotpotqa --exact INDEX --out FOLDER
    python benchmarks/rerank.py size DATA hotpotqa --exact INDEX --out FOLDER --copies 44 --nbits 2

INDEX is of `questree index DATA/corpora/hotpotqa.jsonl --kind exact`: its embeddings are packed, nothing is encoded
again. `size` repeats the real passages with other ids. BM25's lists are the real ones, as many times as long; the
embeddings are random bytes, of as many rows as the real passages have. So what is found there means nothing.

Each index is searched in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import numpy as np
import torch

from questree.common.manifests import FileRecord
from questree.data import Question, read_questions
from questree.metrics import mean_interval, recall_at_k
from questree.metrics.found_passages import gold_names, names_as
from questree.retrieval import BM25Retriever, RerankSettings, build_index, load_index, read_manifest
from questree.retrieval.base import Hits
from questree.retrieval.indexes.chunks import CHUNK, rows_file
from questree.retrieval.indexes.contents import OFFSETS, PASSAGES, CorpusRecord, PassageStore, seal
from questree.retrieval.late_interaction import rerank
from questree.retrieval.late_interaction.checkpoint import find_checkpoint
from questree.retrieval.late_interaction.embeddings import Embeddings
from questree.retrieval.late_interaction.encoder import Encoder
from questree.retrieval.late_interaction.rerank import FOLDER, PLACES

KS, GATHERED, BITS = (5, 15), (50, 100, 200, 500), (2, 4, 8)
REPEATS = 5


def main() -> None:
    """Print the table that was asked for."""
    given = arguments()
    if given.step == "search":
        print(json.dumps(search(given)))
    elif given.command == "quality":
        quality(given)
    else:
        size(given)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["quality", "size"])
    parser.add_argument("data", type=Path, help="holds TASK.jsonl and corpora/TASK.jsonl")
    parser.add_argument("task")
    parser.add_argument("--exact", type=Path, required=True, help="the exact index of the task's corpus")
    parser.add_argument("--out", type=Path, required=True, help="where indexes are made")
    parser.add_argument("--nbits", type=int, nargs="+", default=list(BITS))
    parser.add_argument("--copies", type=int, default=1, help="of each passage")
    parser.add_argument("--questions", type=int, help="for recall; all of them by default")
    parser.add_argument("--queries", type=int, default=40, help="of which the time is taken")
    parser.add_argument(
        "--candidates", type=int, default=RerankSettings().candidates, help="gathered while it is timed"
    )
    parser.add_argument("--step", help=argparse.SUPPRESS)
    return parser.parse_args()


def quality(given: argparse.Namespace) -> None:
    """Recall by bits and candidates, beside exact search over the same embeddings and BM25 alone."""
    questions, exact = asked(given)[: given.questions], load_index(given.exact, full_check=False)
    texts = [question.question for question in questions]
    embedded = exact.encoder.queries(texts)
    gatherer = BM25Retriever.from_passages(exact.passages)
    gathered = gatherer._search(texts, max(GATHERED))
    rows = [["BM25", "", *recalls(gathered, exact.passages, questions)]]
    for nbits in given.nbits:
        embeddings = load_index(packed(given, nbits), full_check=False)._embeddings
        scored = [scores_of(query, hits, embeddings) for query, hits in zip(embedded, gathered, strict=True)]
        for count in GATHERED:
            pairs = zip(gathered, scored, strict=True)
            best = [[hits[place] for place in np.argsort(-scores[:count], kind="stable")] for hits, scores in pairs]
            rows.append([f"{nbits} bits", f"{count}", *recalls(best, exact.passages, questions)])
            print(rows[-1], file=sys.stderr, flush=True)
    rows.append(["exact search", "", *recalls(exact._search(texts, max(KS)), exact.passages, questions)])
    print(f"{given.task}: {len(exact.passages):,} passages, {len(questions)} questions\n")
    print(table([["embeddings", "gathered", *(f"recall@{k}" for k in KS)], *rows]))


def scores_of(query: torch.Tensor, hits: Hits, embeddings: rerank.PackedEmbeddings) -> np.ndarray[Any, Any]:
    """The MaxSim of a query with each passage that was gathered."""
    return rerank.maxsim(query, *embeddings.of([position for position, _ in hits])) if hits else np.empty(0)


def asked(given: argparse.Namespace) -> list[Question]:
    """The task's questions that have gold passages."""
    return [question for question in read_questions(given.data / f"{given.task}.jsonl") if question.gold_titles]


def recalls(found: Sequence[Hits], passages: Any, questions: Sequence[Question]) -> list[str]:
    """The share of gold passages among the first k, for each k; of gold titles, where only they are known."""
    scored = []
    for hits, question in zip(found, questions, strict=True):
        gold = question.known_gold()
        names = names_as([passages[position] for position, _ in hits[: max(KS)]], gold)
        scored.append((names, gold_names(gold, question.gold_titles)))
    return [str(mean_interval([recall_at_k(names, gold, k) or 0.0 for names, gold in scored])) for k in KS]


def packed(given: argparse.Namespace, nbits: int) -> Path:
    """The index as `questree index` builds it, with an encoder that reads what the exact index stores."""
    folder = given.out / f"{given.task}-{nbits}"
    if folder.exists():
        return Path(folder)
    source = PassageStore(given.exact)
    stored = Embeddings(given.exact / "embeddings", int(read_manifest(given.exact).settings["dim"]), len(source))
    place = {passage.shown(): position for position, passage in enumerate(source)}

    def read(self: Encoder, texts: Sequence[str], progress: Any = None) -> Iterator[Any]:
        return (torch.from_numpy(stored.of(place[text])) for text in texts)

    with mock.patch.object(Encoder, "passages", read):
        start = time.perf_counter()
        build_index(source, folder, kind="rerank", settings=RerankSettings(nbits=nbits))
    print(f"{folder}: made, without encoding, in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return Path(folder)


def size(given: argparse.Namespace) -> None:
    """The cost of a search, by bits, in the real corpus or in so many copies of it."""
    rows = []
    for nbits in given.nbits:
        folder = packed(given, nbits)
        if given.copies > 1:
            folder = repeated(folder, given.out / f"{given.copies}-times-{nbits}", given.copies)
        rows.append([f"{nbits}", *measured(given, folder)])
        print(rows[-1], file=sys.stderr, flush=True)
    print(table([["bits", *MEASURED], *rows]))


def repeated(real: Path, folder: Path, copies: int) -> Path:
    """An index of the same passages so many times, with random bytes as embeddings."""
    if folder.exists():
        return folder
    start = time.perf_counter()
    manifest, count = read_manifest(real), read_manifest(real).corpus.passages
    folder.mkdir()
    repeat_passages(real, folder, copies)
    repeat_words(real / "bm25", folder / "bm25", copies, count)
    lengths = np.diff(np.load(real / PLACES), axis=1)[:, 0]
    write_rows(folder, np.tile(lengths, copies), manifest.settings["dim"] * manifest.settings["rerank"]["nbits"] // 8)
    corpus = CorpusRecord(name=f"{manifest.corpus.name}, {copies} times", sha256="", passages=count * copies)
    with mock.patch.object(FileRecord, "of", lambda path: FileRecord(bytes=path.stat().st_size, sha256="")):
        seal(folder, manifest.model_copy(update={"corpus": corpus}))
    print(f"{folder}: written in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return folder


def repeat_passages(real: Path, folder: Path, copies: int) -> None:
    """Write the passages so many times, each time with the copy's number before their ids."""
    lines, lengths = b"\n" + (real / PASSAGES).read_bytes()[:-1], np.diff(np.load(real / OFFSETS))
    parts = []
    with (folder / PASSAGES).open("wb") as file:
        for copy in range(copies):
            before = f"{copy}-".encode()
            file.write(lines.replace(b'\n["', b'\n["' + before)[1:] + b"\n")
            parts.append(lengths + len(before))
    np.save(folder / OFFSETS, np.concatenate([[0], np.cumsum(np.concatenate(parts))]))


def repeat_words(real: Path, folder: Path, copies: int, passages: int) -> None:
    """Write BM25's lists so many times as long; the scores are as they were: idf depends on the share of passages."""
    shutil.copytree(real, folder)
    scores, places, ends = (np.load(real / f"{name}.csc.index.npy") for name in ("data", "indices", "indptr"))
    np.save(folder / "indptr.csc.index.npy", ends.astype(np.int64) * copies)
    shifts = (np.arange(copies, dtype=np.int32) * passages)[:, None]
    for name, values in (("data", scores), ("indices", places)):
        file = folder / f"{name}.csc.index.npy"
        longer = np.lib.format.open_memmap(file, "w+", values.dtype, (len(values) * copies,))
        for first, end in pairwise(ends.tolist()):
            of_word = values[first:end][None] + shifts if name == "indices" else np.tile(values[first:end], copies)
            longer[first * copies : end * copies] = of_word.ravel()
        longer.flush()
    params = json.loads((real / "params.index.json").read_bytes())
    (folder / "params.index.json").write_text(json.dumps({**params, "num_docs": passages * copies}))


def write_rows(folder: Path, lengths: np.ndarray[Any, Any], width: int) -> None:
    """Write random bytes as the rows of every chunk, and where those of each passage are."""
    (folder / FOLDER).mkdir()
    draw = np.random.default_rng(1)
    pool = draw.integers(0, 256, 1 << 26, dtype=np.uint8)
    places = np.empty((len(lengths), 2), dtype=np.int32)
    for number, first in enumerate(range(0, len(lengths), CHUNK)):
        ends = np.cumsum(lengths[first : first + CHUNK])
        places[first : first + CHUNK] = np.stack([ends - lengths[first : first + CHUNK], ends], axis=1)
        start = int(draw.integers(0, len(pool) - ends[-1] * width))
        rows_file(folder / FOLDER, number, "u1").write_bytes(pool[start : start + ends[-1] * width].data)
    np.save(folder / PLACES, places)


MEASURED = (
    "passages",
    "B a passage",
    "MB",
    "ms, first time",
    "ms",
    "gathering",
    "encoding",
    "CPU ms",
    "ms in 32s",
)


def measured(given: argparse.Namespace, folder: Path) -> list[str]:
    """A row of what a search costs, in a process of its own."""
    command = [sys.executable, __file__, given.command, str(given.data), given.task, "--exact", str(given.exact)]
    command += [
        "--out",
        str(folder),
        "--queries",
        str(given.queries),
        "--candidates",
        str(given.candidates),
        "--step",
        "search",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: list[str] = json.loads(done.stdout.splitlines()[-1])
    return row


def search(given: argparse.Namespace) -> list[str]:
    """Ask an index each query several times; the least time counts, as other work on the machine only lengthens it."""
    encoder = Encoder.load(find_checkpoint())
    encoder.queries(["asked before the clock runs"])
    rerank.encoder_of = lambda *_: encoder
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    index = load_index(given.out, full_check=False)
    index.candidates = given.candidates
    queries = [question.question for question in asked(given)][: given.queries]
    first = [clocked(partial(index._search, [query], 10)) for query in queries]
    busy = time.process_time()
    alone = [least(partial(index._search, [query], 10)) for query in queries]
    busy = (time.process_time() - busy) / REPEATS / len(queries)
    gathering = [least(partial(index._gatherer._search, [query], index.candidates)) for query in queries]
    encoding = [least(partial(encoder.queries, [query])) for query in queries]
    together = least(partial(index._search, queries[:32], 10)) / min(32, len(queries))
    manifest = read_manifest(given.out)
    total, peak = sum(file.bytes for file in manifest.files.values()), memory("VmHWM") - before
    times = [fmean(some) for some in (first, alone, gathering, encoding, [busy], [together])]
    each = total / manifest.corpus.passages
    return [f"{manifest.corpus.passages:,}", f"{each:,.0f}", f"{peak:.0f}", *(f"{1000 * one:.1f}" for one in times)]


def least(work: Callable[[], object]) -> float:
    """The least seconds of several repetitions."""
    return min(clocked(work) for _ in range(REPEATS))


def clocked(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memory(name: str) -> float:
    """MB of this process, as Linux tells them: VmRSS now, VmHWM at the most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""])


if __name__ == "__main__":
    main()
