"""A comparison of all programs, its capsule, and the replay's time beside the comparison's: docs/capsules.md.

    python benchmarks/capsules.py FOLDER --latency 0.5
    python benchmarks/capsules.py FOLDER --latency 0.5 --task recorded:musique --lm recorded:FILE \
        --split dev,test --limit 100 --retriever INDEX

The LM is simulated, behind an address of this process, and takes so long for each reply. What is not known here goes to
`questree compare`. The replay runs in an empty folder. A row is made again only if its FOLDER is new.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from questree.parts import Parts
from questree.settings import RunSettings
from questree.simulate import running


class Took(NamedTuple):
    """What a command took: seconds by the clock, and of the processor; and the machine's load after it."""

    clock: float
    processor: float
    load: float


def main() -> None:
    """Print what the comparison took, and what its replay took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that the LM takes for a reply")
    parser.add_argument("--task", default="mini")
    parser.add_argument("--lm", default="simulated", help="or recorded:FILE")
    given, more = parser.parse_known_args()
    runs, capsule = given.folder / "runs", given.folder.absolute() / "study.capsule"
    engine = Parts(RunSettings(task=given.task, lm=given.lm)).lm.engine
    engine.mind.traits = engine.mind.traits.model_copy(update={"latency": given.latency})
    with running(engine) as address:
        asked = ["compare", "--all", "--task", given.task, "--out", str(runs), "--tracking-uri", "none", *more]
        name = f"openai/{engine.mind.kind}-{engine.mind.fingerprint}"
        compared, _ = took([*asked, "--lm", name, "--api-base", address])
    packing, packed = took(["pack", str(runs), "--out", str(capsule)])
    with tempfile.TemporaryDirectory() as empty:
        replayed, told = took(["replay", str(capsule), "--json"], Path(empty))
    runs_told = json.loads(told)
    same, questions = (sum(run[name] for run in runs_told) for name in ("same", "questions"))
    print(packed)
    print(f"{same:,} of {questions:,} records of {len(runs_told)} runs are the same")
    for what, of in {"compare": compared, "pack": packing, "replay": replayed}.items():
        print(f"{what}: {of.clock:.1f} s, {of.processor:.1f} s of the processor, load {of.load:.1f}")
    print(f"the replay took {replayed.clock / compared.clock:.1%} of the comparison's time")


def took(words: list[str], folder: Path | None = None) -> tuple[Took, str]:
    """Run a command of questree; return what it took, and what it printed."""
    before, clock = os.times(), time.perf_counter()
    environment = {**os.environ, "OPENAI_API_KEY": "unused"}
    done = subprocess.run(
        [Path(sys.executable).with_name("questree"), *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    after = os.times()
    if not done.stdout:  # a replay in which a record differs ends with 1, too
        sys.exit(f"questree {words[0]} ended with {done.returncode}")
    processor = sum(getattr(after, of) - getattr(before, of) for of in ("children_user", "children_system"))
    return Took(time.perf_counter() - clock, processor, os.getloadavg()[0]), done.stdout


if __name__ == "__main__":
    main()
