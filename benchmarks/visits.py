"""How far one question travels through the house: files entered, and visits from one room to another (simulated LM).

    python benchmarks/visits.py --program searchain --calls 5

A visit is a call from a file of one room (a top-level folder) into a file of another. The simulated LM stands in for
a server: what happens in it is not counted. Programs that run calls on several threads are counted in part.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import dspy

import questree
from questree.data import MINI_CORPUS
from questree.retrieval import BM25Retriever, read_corpus
from questree.simulate import Traits, simulated_lm

HOUSE = Path(questree.__file__).resolve().parents[1]
SERVER = "simulate"
OUTSIDE = {SERVER, "benchmarks"}  # the LM's server, and the one who asks


class Visits:
    """A profile function that counts which files are entered, and how often a room calls another.

    Attributes:
        files: calls into each file.
        visits: calls from a room into another, by the two rooms.
    """

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.visits: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Count a call; Python calls this for every call and return."""
        if event != "call" or (file := _file(frame)) is None:
            return
        caller, *further = _callers(frame) or [""]
        if _room(file) in OUTSIDE or _room(caller) in OUTSIDE or SERVER in map(_room, further):
            return
        self.files[file] += 1
        if caller and _room(caller) != _room(file):
            self.visits[f"{_room(caller)} -> {_room(file)}"] += 1


def main() -> None:
    """Ask questions until one takes the wanted number of LM calls, and print how far it travelled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="searchain")
    parser.add_argument("--calls", type=int, default=5, help="LM calls of the question that is counted")
    given = parser.parse_args()
    task = questree.load_task("mini")
    questions = [question for part in task.questions.values() for question in part]
    dspy.configure(lm=simulated_lm(questions, Traits(malformed=0), cache=False))
    program = questree.program(given.program, retriever=BM25Retriever.from_passages(read_corpus(MINI_CORPUS)))
    for question in task.split("dev"):
        program(question=question.question)  # what is loaded or compiled once is not counted
        visits = Visits()
        sys.setprofile(visits)
        spent = program(question=question.question).spent
        sys.setprofile(None)
        if spent.calls == given.calls:
            print(f"{given.program}, {question.id}: {spent.calls} LM calls, {len(visits.files)} files, ", end="")
            print(f"{sum(visits.visits.values())} visits: {dict(visits.visits.most_common())}")
            return
    print(f"No question of the mini set takes {given.calls} LM calls.")


def _file(frame: FrameType) -> str | None:
    """Return the package's file that the frame runs in, as a path from the house's door; None for other files."""
    file = frame.f_code.co_filename
    return file[len(str(HOUSE)) + 1 :] if file.startswith(f"{HOUSE}/") and "site-packages" not in file else None


def _callers(frame: FrameType) -> list[str]:
    """Return the package's files from which the call came, through any library, the nearest first."""
    callers, outer = list[str](), frame.f_back
    while outer is not None:
        if file := _file(outer):
            callers.append(file)
        outer = outer.f_back
    return callers


def _room(file: str) -> str:
    return file.partition("/")[0]


if __name__ == "__main__":
    main()
