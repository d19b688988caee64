"""What each setting of the three methods does: writes the tables of docs/ablations.md.

QUESTREE_DATA=… python benchmarks/ablations.py --retriever INDEX --lm recorded:FILE > tables.md
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from questree.evaluation.tables import markdown_of
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


def main() -> None:
    """Run every ablation and print its command and its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="recorded:musique")
    parser.add_argument("--split", default="dev,test")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--lm", required=True)
    parser.add_argument("--retriever", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--semantic", action="store_true", help="only the pruning by meaning")
    given = parser.parse_args()
    for name, over, values in [SEMANTIC] if given.semantic else ABLATIONS:
        settings = RunSettings(
            task=given.task,
            split=given.split,
            limit=given.limit,
            lm=given.lm,
            retriever=given.retriever,
            tracking_uri="none",
            out=given.out / f"{name}-{'-'.join(over)}",
        )
        comparison, _ = Experiment(settings).ablate(name, over=over, values=with_default(name, over, values))
        print(f"\n### {name}: {', '.join(over)}\n\n`{command(name, over, values)}`\n")
        print(markdown_of(comparison.table.lines), flush=True)


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
