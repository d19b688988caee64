"""How soon pages of large runs come: the index, made and found again, and a page of each kind (Linux; simulated LM).

    python benchmarks/run_pages.py --questions 10000

Two programs answer the bundled questions; their answers are then copied under other ids.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from questree.cli import app
from questree.pages.run_index import open_index
from questree.pages.study import Study


def main() -> None:
    """Make the runs, and look at their pages in two processes: the second finds the index of the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--look", type=Path, help="look at the runs in this folder")
    given = parser.parse_args()
    if given.look:
        look(given.look)
        return
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few", Path(folder) / "many"
        asked = ["searchain", "direct", "--limit", "40", "--tracking-uri", "none", "--out", str(few)]
        app(["compare", *asked], standalone_mode=False)
        for run in ("searchain", "direct"):
            copy(few / run, many / run, given.questions)
        for said in ("first look", "with the index"):
            print(said)
            own = {**os.environ, "QUESTREE_CACHE": f"{folder}/cache"}
            subprocess.run([sys.executable, __file__, "--look", str(many)], check=True, env=own)


def copy(run: Path, to: Path, questions: int) -> None:
    """Write a run with so many questions: those of another one, again and again."""
    to.mkdir(parents=True)
    (to / "run.json").write_text((run / "run.json").read_text())
    records = sorted(map(json.loads, (run / "records.jsonl").open()), key=lambda one: str(one["id"]))
    scores = {one["id"]: one["scores"] for one in map(json.loads, (run / "scores.jsonl").open())}
    asked = {one["id"]: one["packed"] for one in map(json.loads, (run / "exchanges.jsonl").open())}
    with (
        (to / "records.jsonl").open("w") as kept,
        (to / "scores.jsonl").open("w") as scored,
        (to / "exchanges.jsonl").open("w") as packed,
    ):
        for number in range(questions):
            record = records[number % len(records)]
            id = f"{record['id']}-{number}"
            line = json.dumps({**record, "id": id})
            digest = hashlib.sha256(line.encode()).hexdigest()[:16]
            kept.write(f"{line}\n")
            scored.write(json.dumps({"id": id, "record": digest, "scores": scores[record["id"]]}) + "\n")
            packed.write(json.dumps({"id": id, "packed": asked[record["id"]]}) + "\n")


def look(runs: Path) -> None:
    """Open the runs, and print the seconds of it and of some pages, and the memory."""
    began = time.perf_counter()
    study = Study("runs", open_index(runs))
    study.page("index.html")
    print(f"  opened in {time.perf_counter() - began:.2f} s")
    for name in ("questions.html", "questions-part-2.html", "question-100.html", "question-100-2.html"):
        began = time.perf_counter()
        study.page(name)
        print(f"  {name}: {time.perf_counter() - began:.3f} s")
    status = Path("/proc/self/status").read_text()  # getrusage would also count what the parent had
    print(f"  most memory: {int(status.partition('VmHWM:')[2].split()[0]) // 1024} MB")


if __name__ == "__main__":
    main()
