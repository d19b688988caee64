"""What indexes of growing corpora cost, and what that makes for Wikipedia: the tables of docs/scale.md.

    python benchmarks/scale.py --corpus CORPUS.jsonl --questions TASK.jsonl --sizes 1000 5000 23125 > tables.md

Every index is built in one process and searched in another, so that each has its own peak of memory. Run it when the
machine does nothing else.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import linear_regression

from questree.retrieval import BuildProgress, build_index, load_index, read_corpus, read_manifest

KINDS = ("bm25", "exact", "colbert")
LARGE = (5_000_000, 21_000_000)
TOGETHER, K = 32, 10


@dataclass(frozen=True)
class Cost:
    """Of one index.

    Attributes:
        seconds: of building, from the first passage read to the folder in its place.
        encoding: seconds of it in which passages were encoded; 0 where nothing is encoded.
        rows: token embeddings; 0 where there are none.
        disk: bytes of the index.
        build_memory, search_memory: peaks of the processes, less what a process takes before it begins.
        alone, together: milliseconds a query, one by one and 32 at a time.
    """

    kind: str
    passages: int
    seconds: float
    encoding: float
    rows: int
    disk: int
    build_memory: int
    search_memory: int = 0
    alone: float = 0
    together: float = 0


def main() -> None:
    """Measure every kind at every size; print the tables."""
    given = arguments()
    if given.step:
        print(json.dumps(build(given) if given.step == "build" else search(given)))
        return
    costs = []
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        for size in given.sizes:
            for kind in given.kinds:
                out = str(Path(work) / f"{kind}-{size}")
                built = step(given, "build", kind, size, out)
                costs.append(Cost(**built | step(given, "search", kind, size, out)))
                print(f"{kind}, {size}: {asdict(costs[-1])}", file=sys.stderr)
    print(f"`{' '.join(['python', *sys.argv])}`\n\n{machine()}\n")
    print(measured(costs))
    print(extrapolated(costs))


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with `question`")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 5000, 23125])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--queries", type=int, default=96)
    parser.add_argument("--work", help="where to build; default: the system's temporary folder")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    return parser.parse_args()


def step(given: argparse.Namespace, name: str, kind: str, size: int, out: str) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--step", name, "--out", out, "--kinds", kind, "--sizes", str(size)]
    command += ["--corpus", str(given.corpus), "--questions", str(given.questions), "--queries", str(given.queries)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def build(given: argparse.Namespace) -> dict[str, object]:
    """Build an index; the fields of `Cost` that this tells."""
    kind, size = given.kinds[0], given.sizes[0]
    ready(kind)
    encoding: list[float] = []

    def told(now: BuildProgress) -> None:
        if now.stage == "encoding":
            encoding.append(time.perf_counter())

    before, start = peak(), time.perf_counter()
    out = build_index(islice(read_corpus(given.corpus), size), given.out, kind=kind, progress=told)
    seconds, memory = time.perf_counter() - start, peak() - before
    manifest = read_manifest(out)
    if manifest.corpus.passages != size:
        raise SystemExit(f"{given.corpus} holds {manifest.corpus.passages} passages; {size} were asked for.")
    return {
        "kind": kind,
        "passages": size,
        "seconds": seconds,
        "encoding": encoding[-1] - encoding[0] if encoding else 0,
        "rows": rows_of(out, kind),
        "disk": sum(file.bytes for file in manifest.files.values()),
        "build_memory": memory,
    }


def search(given: argparse.Namespace) -> dict[str, float]:
    """Search an index alone and together, each query once; the first few are not counted."""
    questions = [json.loads(line)["question"] for line in given.questions.open(encoding="utf-8")]
    warm, alone, together = questions[:4], questions[4 : 4 + given.queries], questions[-given.queries :]
    ready(given.kinds[0])
    before, retriever = peak(), load_index(given.out)
    for question in warm:
        retriever(question, k=K)
    start = time.perf_counter()
    for question in alone:
        retriever(question, k=K)
    middle = time.perf_counter()
    for first in range(0, len(together), TOGETHER):
        retriever.batch(together[first : first + TOGETHER], k=K)
    end = time.perf_counter()
    return {
        "alone": 1000 * (middle - start) / len(alone),
        "together": 1000 * (end - middle) / len(together),
        "search_memory": peak() - before,
    }


def ready(kind: str) -> None:
    """What takes the same time and memory at any size: libraries, the encoder, PLAID's extensions."""
    if kind == "bm25":
        import bm25s  # noqa: F401

        return
    from questree.retrieval.late_interaction.checkpoint import find_checkpoint
    from questree.retrieval.late_interaction.compat import load_extensions
    from questree.retrieval.late_interaction.encoder import Encoder

    list(Encoder.load(find_checkpoint()).passages(["warm"]))
    if kind == "colbert":
        load_extensions()


def peak() -> int:
    """The most memory that this process had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def rows_of(index: Path, kind: str) -> int:
    """Token embeddings of an index."""
    if kind == "exact":
        dim = int(read_manifest(index).settings["dim"])
        return sum(path.stat().st_size for path in (index / "embeddings").glob("*.f16")) // (2 * dim)
    if kind == "colbert":
        return int(json.loads((index / "plaid" / "metadata.json").read_bytes())["num_embeddings"])
    return 0


def machine() -> str:
    """Where this was measured."""
    names = [line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor()}; load {os.getloadavg()[0]:.1f}"


def cpu_lines() -> list[str]:
    """What Linux says of the processor."""
    info = Path("/proc/cpuinfo")
    return info.read_text().splitlines() if info.exists() else []


def measured(costs: list[Cost]) -> str:
    """The table of what was measured."""
    head = ["kind", "passages", "build s", "encoded/s", "disk B/passage", "build B/passage", "search B/passage"]
    rows = [[*head, "ms alone", "ms in 32s"]]
    for cost in costs:
        n = cost.passages
        row = [cost.kind, f"{n:,}", f"{cost.seconds:.1f}", f"{n / cost.encoding:.1f}" if cost.encoding else "", ""]
        row[-1] = f"{cost.disk / n:,.0f}"
        row += [f"{cost.build_memory / n:,.0f}", f"{cost.search_memory / n:,.0f}"]
        rows.append([*row, f"{cost.alone:.1f}", f"{cost.together:.1f}"])
    return table(rows)


def extrapolated(costs: list[Cost]) -> str:
    """The table for Wikipedia: for each kind the line through its measurements, but for PLAID's centroids."""
    head = ["kind", "passages", "encode h", "centroids h", "other h", "disk GB"]
    rows = [[*head, "build GB", "search GB", "ms in 32s", "centroids' products"]]
    for kind in dict.fromkeys(cost.kind for cost in costs):
        of_kind = sorted((cost for cost in costs if cost.kind == kind), key=lambda cost: cost.passages)
        rows += [estimate(of_kind, passages) for passages in LARGE]
    return table(rows)


def estimate(costs: list[Cost], passages: int) -> list[str]:
    """A row for so many passages; a search in PLAID grows with no simple rule, and is left open."""
    largest = costs[-1]

    def grown(*field: str) -> float:
        """On the line through the measurements of a field, or of the first less the others."""
        values = [getattr(cost, field[0]) - sum(getattr(cost, less) for less in field[1:]) for cost in costs]
        if len(costs) == 1:
            return float(values[0] / largest.passages * passages)
        slope, intercept = linear_regression([cost.passages for cost in costs], values)
        return slope * passages + intercept

    centroids, other, query, count = 0.0, grown("seconds", "encoding"), told(grown("together")), ""
    if largest.kind == "colbert":
        tokens = largest.rows / largest.passages
        share = products(passages, tokens) / products(largest.passages, tokens)
        centroids, other, query = (largest.seconds - largest.encoding) * share, 0.0, ""
        count = f"{products(passages, tokens):.1e}, {share:,.0f} times those of {largest.passages:,}"
    hours = [f"{seconds / 3600:,.1f}" for seconds in (grown("encoding"), centroids, other)]
    sizes = [f"{grown(field) / 1e9:,.0f}" for field in ("disk", "build_memory", "search_memory")]
    return [largest.kind, f"{passages:,}", *hours, *sizes, query, count]


def told(milliseconds: float) -> str:
    """Empty where the line falls: then the small corpora measured say nothing about a large one."""
    return f"{milliseconds:,.0f}" if milliseconds > 0 else ""


def products(passages: int, tokens: float, iterations: int = 4, sampled: int = 1 << 24) -> float:
    """Products of an embedding and a centroid: in training on the sample, and once for every embedding."""
    centroids = 2 ** math.floor(math.log2(16 * math.sqrt(passages * tokens)))
    sample = min(1 + int(16 * math.sqrt(120 * passages)), passages) * tokens
    return centroids * (iterations * min(sample, sampled, 256 * centroids) + passages * tokens)


def table(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""])


if __name__ == "__main__":
    main()
