"""What a command takes to start, in processor time, and how many modules of ours a question loads, and functions runs.

    python benchmarks/startup.py

The LM is simulated. Each command runs in a process of its own, three times after one that warms caches; the lowest
counts.
"""

import json
import sys
import tempfile
from pathlib import Path

from frame import QUESTION, begin, options, run_command

import questree
from questree.data import MINI_CORPUS

RUN = """
import inspect, json, sys
from questree.cli import main
sys.argv = ["questree", *sys.argv[1:]]
ran = set()
if "--count" in sys.argv:
    sys.argv.remove("--count")
    def seen(frame, event, argument):
        code = frame.f_code
        written = code.co_flags & inspect.CO_OPTIMIZED and "<" not in (code.co_filename[0], code.co_name[0])
        if event == "call" and written and frame.f_globals.get("__name__", "").startswith("questree."):
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
    begin(options(__doc__))
    with tempfile.TemporaryDirectory() as folder:
        index = str(questree.build_index(MINI_CORPUS, Path(folder) / "bm25", kind="bm25"))
        ask = ["-c", RUN, "ask", QUESTION]
        starts = {
            "import questree": ["-c", "import questree"],
            "questree --help": ["-c", RUN, "--help"],
            "questree ask, BM25": [*ask, "--retriever", index],
            "questree ask, its default index": ask,
        }
        for what, words in starts.items():
            runs = [run_command([sys.executable, *words])[0].processor for _ in range(4)]
            print(f"{what}: {min(runs[1:]):.2f} s of processor time")
        found = json.loads(run_command([sys.executable, *ask, "--retriever", index, "--count"])[1].splitlines()[-1])
        print(f"over BM25: {found['modules']} modules of Questree loaded, {found['functions']} of its functions run")


if __name__ == "__main__":
    main()
