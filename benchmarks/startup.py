"""How long a command takes to start, in processor time, and how much of Questree one question loads and runs.

    python benchmarks/startup.py

The LM is simulated. Each command runs in a process of its own, three times after one that warms caches; the lowest
counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import questree
from questree.data import MINI_CORPUS

QUESTION = "Which river reaches the sea in the city where the author of Ulysses was born?"
RUN = """
import json, sys
from questree.cli import main
sys.argv = ["questree", *sys.argv[1:]]
ran = set()
if "--count" in sys.argv:
    sys.argv.remove("--count")
    def seen(frame, event, argument):
        code = frame.f_code
        if event == "call" and frame.f_globals.get("__name__", "").startswith("questree.") and code.co_name[0] != "<":
            ran.add((code.co_filename, code.co_firstlineno))
    sys.setprofile(seen)
try:
    main()
except SystemExit:
    sys.setprofile(None)
    modules = sum(name.partition(".")[0] == "questree" for name in sys.modules)
    print(json.dumps({"modules": modules, "functions": len(ran)}))
"""


def main() -> None:
    """Print the processor time of each start, and what a question loads and runs."""
    with tempfile.TemporaryDirectory() as folder:
        index = str(questree.build_index(MINI_CORPUS, Path(folder) / "bm25", kind="bm25"))
        starts = {
            "import questree": ["-c", "import questree"],
            "questree --help": ["-c", RUN, "--help"],
            "questree ask, BM25": ["-c", RUN, "ask", QUESTION, "--retriever", index],
            "questree ask, its default index": ["-c", RUN, "ask", QUESTION],
        }
        for what, words in starts.items():
            print(f"{what}: {min([_seconds(words) for _ in range(4)][1:]):.2f} s of processor time")
        counted = _run(["-c", RUN, "ask", QUESTION, "--retriever", index, "--count"])
        found = json.loads(counted.splitlines()[-1])
        print(f"over BM25: {found['modules']} modules of Questree loaded, {found['functions']} of its functions run")


def _run(words: list[str]) -> str:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout


def _seconds(words: list[str]) -> float:
    """Return the processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
