"""What each setting of the three methods does: writes the tables of docs/ablations.md.

    python benchmarks/ablations.py DATA --retriever INDEX > tables.md

DATA is a folder with `recorded.jsonl` and `corpora/musique.jsonl`, INDEX an index of that corpus. The questions are
those whose gold passages the corpus tells (`recorded_gold.py`), and the LM is the one that was recorded.
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from recorded_gold import rows_with_gold

from questree.evaluation.tables import Table, markdown_of
from questree.experiment import Experiment
from questree.settings import RunSettings

Ablation = tuple[str, list[str], list[Any] | None]

ABLATIONS: list[Ablation] = [
    ("searchain", ["preset"], None),
    ("tree-of-reviews", ["preset"], None),
    ("blendfilter", ["preset"], None),
    ("tree-of-reviews", ["expansion"], None),
    ("tree-of-reviews", ["fusion"], None),
    ("tree-of-reviews", ["relevance_pruning", "repetitive_pruning"], None),
    ("tree-of-reviews", ["widths"], [[5, 3], [5, 3, 3, 3], [10, 5, 3]]),
    ("tree-of-reviews", ["order"], None),
    ("tree-of-reviews", ["enough_agreement"], [1, 2, 3]),
    ("tree-of-reviews", ["max_calls"], [6, 12, 18]),
    ("blendfilter", ["filter"], None),
    ("blendfilter", ["topic"], None),
    ("blendfilter", ["queries"], [["original"], ["original", "external"], ["original", "internal"]]),
    ("blendfilter", ["k"], [3, 10]),
    ("blendfilter", ["hops"], [2]),
    ("blendfilter", ["samples"], [3]),
]
# Only an index with embeddings can tell near-duplicates.
SEMANTIC: Ablation = ("tree-of-reviews", ["semantic_pruning"], [0.95, 0.9, 0.85])


DETAILS = (
    *("recall@15", "recall@all", "precision@all", "recall kept", "precision kept"),
    *("documents", "evidences", "citation_recall", "words in", "words out"),
)


def main() -> None:
    """Run every ablation and print its command and its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with recorded.jsonl and corpora/musique.jsonl")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--retriever", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--semantic", action="store_true", help="only the pruning by meaning")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    questions = given.out / "questions.jsonl"
    lines = rows_with_gold(given.data / "recorded.jsonl", given.data / "corpora" / "musique.jsonl", "musique")
    questions.write_text("\n".join(lines), encoding="utf-8")
    for name, over, values in [SEMANTIC] if given.semantic else ABLATIONS:
        settings = RunSettings(
            task=str(questions),
            split="dev,test",
            limit=given.limit,
            lm=f"recorded:{questions}",
            retriever=given.retriever,
            tracking_uri="none",
            out=given.out / f"{name}-{'-'.join(over)}",
        )
        comparison, _ = Experiment(settings).ablate(
            name, over=over, values=with_default(name, over, values), metrics=["cover-em", "em", "f1"]
        )
        print(f"\n### {name}: {', '.join(over)}\n\n`{command(name, over, values)}`\n")
        print(markdown_of(rows(comparison.table)), flush=True)


def rows(table: Table) -> list[dict[str, str]]:
    """Return the table's rows, with the details that show what a setting moves."""
    return [
        {name: text for name, text in line.items() if name != "cost"}
        | {name: of[name] for name in DETAILS if name in of}
        for line, of in zip(table.lines, table.details, strict=True)
    ]


def with_default(name: str, over: list[str], values: list[Any] | None) -> list[Any] | None:
    """The values, the default among them."""
    if values is None:
        return None
    from questree.programs import PROGRAMS

    return [PROGRAMS[name].Settings.model_fields[over[0]].default, *values]


def command(name: str, over: list[str], values: list[Any] | None) -> str:
    """What one would type."""
    words = ["questree", "ablate", name]
    words += [word for setting in over for word in ("--over", setting)]
    words += [word for value in with_default(name, over, values) or [] for word in ("--value", json.dumps(value))]
    return shlex.join(words)


if __name__ == "__main__":
    main()
