"""What is tried against Questree and what went wrong, in one table; docs/reliability.md holds it.

    python -m benchmarks.reliability --out runs/reliability

Every part that is finished is kept in the folder and not done again. The exit status is 1 if anything went wrong.
"""

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from questree.evaluation.tables import markdown_of

from .tally import Tally

PARTS = ["faults", "dresses", "interruptions", "folders", "corruption", "fuzz", "forgeries"]


def part(name: str) -> Callable[[argparse.Namespace, Path], Iterable[tuple[str, Tally]]]:
    """Return what tries the part of this name, and gives its rows."""
    found: Callable[..., Any] = import_module(f".{name}", __package__).part
    return found


def main() -> None:
    """Do what is not done yet; print all of it."""
    given = arguments()
    for name in ("dspy", "questree"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they tell of every cut reply, and of every changed one
    given.out.mkdir(parents=True, exist_ok=True)
    parts = {name: done_or_kept(name, given) for name in given.only}
    rows = [(what, Tally(Counter(of["tried"]), Counter(of["found"]), of["wrong"]))
            for done in parts.values() for what, of in done["rows"]]  # fmt: skip
    seconds = ", ".join(f"{name} {done['seconds']:.0f} s" for name, done in parts.items())
    said = f"`python -m benchmarks.reliability {' '.join(sys.argv[1:])}`, {os.cpu_count()} cores, Python "
    said += f"{platform.python_version()}: {seconds}. Every LM here is simulated."
    text = f"{said}\n\n{markdown_of([tally.row(what) for what, tally in rows])}"
    (given.out / "table.md").write_text(f"{text}\n")
    print(text)
    if wrong := [f"{what}: {one}" for what, tally in rows for one in tally.wrong]:
        raise SystemExit("\n".join(["", "Went wrong:", *wrong]))


def done_or_kept(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return a part's rows and seconds, from the folder if it is there."""
    file = given.out / f"{name}.json"
    if not file.exists():
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            rows = [(what, vars(tally)) for what, tally in part(name)(given, Path(folder))]
        file.write_text(json.dumps({"rows": rows, "seconds": time.monotonic() - began}, indent=1))
    kept: dict[str, Any] = json.loads(file.read_text())
    return kept


def arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedules", type=int, default=72, help="of faults, for each program")
    parser.add_argument("--commands", nargs="+", help="to interrupt, as `interruptions.COMMANDS` names them; all")
    parser.add_argument("--kills", type=int, default=30, help="of each command")
    parser.add_argument("--stops", type=int, default=20, help="of each command that pays, by Ctrl-C or SIGTERM")
    parser.add_argument("--bytes", type=int, default=40, help="changed in each file; ten times as many in the LM cache")
    parser.add_argument("--texts", type=int, default=7200, help="hostile ones")
    parser.add_argument("--forgeries", type=int, default=100, help="of each file that is read back")
    return parser.parse_args()


if __name__ == "__main__":
    main()
