"""How soon pages of large runs come: opening them, and a page of each kind (Linux; simulated LM).

    python benchmarks/run_pages.py --questions 10000

Two programs answer the bundled questions; their answers are then copied under other ids.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from questree.cli import app
from questree.evaluation.kept_run import KeptRun
from questree.evaluation.run_file import writing
from questree.evaluation.stored_runs import runs_in, steps_of
from questree.pages.shown_runs import ShownRuns
from questree.pages.study import Study


def main() -> None:
    """Make the runs, and look at their pages in another process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--look", type=Path, help="look at the runs in this folder")
    given = parser.parse_args()
    if given.look:
        look(given.look)
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        asked = ["searchain", "direct", "--limit", "40", "--tracking-uri", "none", "--out", str(runs)]
        app(["compare", *asked], standalone_mode=False)
        copy(runs, given.questions)
        print(f"{(runs / 'runs.db').stat().st_size / 1e6:.0f} MB")
        subprocess.run([sys.executable, __file__, "--look", str(runs)], check=True)


def copy(folder: Path, questions: int) -> None:
    """Let each run have so many questions: its own, again and again under other ids."""
    with writing(folder, "comparison", durable=False) as file:
        for run in list(runs_in(file)):
            kept = KeptRun(file, run.name, run.number)
            steps = {one.id: steps_of(file, run.number, one.id) for one in run.records}
            for number in range(questions):
                record = run.records[number % len(run.records)]
                again = record.model_copy(update={"id": f"{record.id}-{number}"})
                kept.append(again, steps[record.id])
                kept.append_scores(again)
            kept.end(run.metrics, run.seed, [f"{run.records[n % len(run.records)].id}-{n}" for n in range(questions)])


def look(runs: Path) -> None:
    """Open the runs, and print the seconds of it and of some pages, and the memory."""
    began = time.perf_counter()
    study = Study("runs", ShownRuns([runs]))
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
