"""What is tried against Questree and what went wrong, in one table; docs/reliability.md holds it.

    python -m benchmarks.reliability --out runs/reliability

Every part that is finished is kept in the folder and not done again. The exit status is 1 if anything went wrong;
attacks that win are counted, and are no fault of this kind.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from questree.evaluation.tables import markdown_of

from . import parts

PARTS: dict[str, Callable[[argparse.Namespace, Path], tuple[list[parts.Row], str]]] = {
    "faults": parts.faults,
    "kills": parts.kills,
    "money": parts.money,
    "corruption": parts.corruption,
    "fuzz": parts.fuzzing,
    "requests": parts.requests,
    "forgeries": parts.forgeries,
    "attacks": parts.attacks,
}


@dataclass(frozen=True)
class Part:
    """A part's rows, what it says beside them, and the seconds it took."""

    rows: list[parts.Row]
    text: str
    seconds: float


def main() -> None:
    """Do what is not done yet; print all of it."""
    given = arguments()
    for name in ("dspy", "questree"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they tell of every cut reply, and of every changed one
    given.out.mkdir(parents=True, exist_ok=True)
    found = [done_or_kept(name, given) for name in given.only]
    rows = [row for part in found for row in part.rows]
    seconds = ", ".join(f"{name} {part.seconds:.0f} s" for name, part in zip(given.only, found, strict=True))
    said = f"`python -m benchmarks.reliability {' '.join(sys.argv[1:])}`, {os.cpu_count()} cores, Python "
    said += f"{platform.python_version()}: {seconds}. Every LM here is simulated."
    table = markdown_of([row.told() for row in rows])
    text = "\n\n".join([said, table, *(part.text for part in found if part.text)])
    (given.out / "table.md").write_text(f"{text}\n")
    print(text)
    wrong = [f"{row.what}: {one}" for row in rows for one in row.wrong]
    if wrong:
        raise SystemExit("\n".join(["", "Went wrong:", *wrong]))


def done_or_kept(name: str, given: argparse.Namespace) -> Part:
    """A part, from the folder if it is there."""
    file = given.out / f"{name}.json"
    if not file.exists():
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            rows, text = PARTS[name](given, Path(folder))
        file.write_text(json.dumps(asdict(Part(rows, text, time.monotonic() - began)), indent=1))
    kept = json.loads(file.read_text())
    return Part([parts.Row(**row) for row in kept["rows"]], kept["text"], kept["seconds"])


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedules", type=int, default=72, help="of faults, for each program")
    parser.add_argument("--kills", type=int, default=30, help="of each kind of command")
    parser.add_argument("--stops", type=int, default=20, help="of each command that pays, by Ctrl-C or SIGTERM")
    parser.add_argument("--bytes", type=int, default=40, help="changed in each file; ten times as many in the LM cache")
    parser.add_argument("--texts", type=int, default=7200, help="hostile ones")
    parser.add_argument("--requests", type=int, default=50, help="hostile ones, of each kind")
    parser.add_argument("--forgeries", type=int, default=100, help="of each file that is read back")
    parser.add_argument("--task", default="mini", help="whose questions are attacked")
    parser.add_argument("--lm", default="simulated", help="simulated, or recorded:FILE")
    parser.add_argument("--retriever", help="default: BM25 over the bundled passages")
    parser.add_argument("--reader", default="lm", help="a trained one is tried as a defence, too")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, default=20, help="questions that are attacked")
    parser.add_argument("--credulous", type=float, default=0.5, help="share of claims that the simulated LM falls for")
    return parser.parse_args()


if __name__ == "__main__":
    main()
