"""SearChain by retriever and by reader: the table of docs/retrieval.md.

    python benchmarks/searchain.py DATA BM25=INDEX "ColBERT, exact=INDEX" "BM25 + exact=INDEX+INDEX" \
        --reader READER --theta 0.62 --theta 3 --out FOLDER > table.md

DATA is a folder with `recorded.jsonl` and `corpora/musique.jsonl`; INDEX is one of that corpus, or several joined by +.
The questions are those whose gold passages the corpus tells (`recorded_gold.py`), and the LM is the one that was
recorded. Rows that are in the folder are not made again.
"""

import argparse
from pathlib import Path

from frame import begin, options
from recorded_gold import write_questions

import questree
from questree.evaluation import compare
from questree.evaluation.tables import markdown_of
from questree.metrics import metric
from questree.parts import Parts
from questree.programs import Program
from questree.retrieval import DPRReader
from questree.settings import RunSettings

METRICS = ("cover-em", "em", "f1")
SHOWN = ("cover-em", "f1", "recall@5", "recall@15", "recall@all", "LM calls", "failed")


def main() -> None:
    """Print a row for each retriever with each reader; the first is what the others are compared with."""
    parser = options(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("retrievers", nargs="+", type=named, metavar="NAME=INDEX")
    parser.add_argument("--reader", help="a trained reader; the LM reads in any case")
    parser.add_argument("--theta", type=float, action="append", default=[], help="of the trained reader; repeat it")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs/searchain"))
    given = begin(parser)
    questions = write_questions(given.data, given.out)
    parts = Parts(RunSettings(task=str(questions), lm=f"recorded:{questions}"))
    parts.use_lm()
    programs = programs_of(given)
    examples = parts.examples("dev,test", given.limit)
    comparison = compare(programs, examples, [metric(name) for name in METRICS], task=parts.task.name, out=given.out)
    table = comparison.table
    first = next(iter(programs))
    rows = []
    for line, more in zip(table.lines, table.details, strict=True):
        known = more | line
        retriever, _, reader = known["program"].partition(" · ")
        difference = {"difference to the first row": known.get(f"difference to {first}", ""), "p": known.get("p", "")}
        shown = {name: known[name] for name in SHOWN}
        rows.append({"retriever": retriever, "reader": reader} | shown | difference)
    print(markdown_of(rows))


def named(text: str) -> tuple[str, str]:
    """Return a retriever's name in the table, and its index."""
    name, _, index = text.partition("=")
    if not name or not index:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=INDEX")
    return name, index


def programs_of(given: argparse.Namespace) -> dict[str, Program]:
    """Return SearChain with each retriever and each reader, by their names."""
    readers = {"the LM": None} | {
        f"trained, theta {theta:g}": DPRReader.load(given.reader, threshold=theta) for theta in given.theta
    }
    return {
        f"{name} · {reader}": questree.program("searchain", retriever=index, reader=readers[reader])
        for name, index in given.retrievers
        for reader in readers
    }


if __name__ == "__main__":
    main()
