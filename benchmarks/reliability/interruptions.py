"""Long commands killed at random points, and run again: what was lost, repeated, or came out differently."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from questree.data import MINI_CORPUS, load_task
from questree.retrieval import build_index
from questree.simulate import Mind, Traits, World

from .killing import EVENTS, LATENCY, SAID, Commands, Point, commands
from .left_behind import RUN, Finished, finished, result
from .small_encoder import save_small_encoder, write_corpus

PASSAGES = 8_000  # eight chunks
IN_FLIGHT = 6  # requests at most: two questions at a time, three calls of each
IN_A_ROW = 3  # kills of one run at most, before it is left to end

_ASKED = ("--task", "mini", "--lm", "openai/simulated", "--retriever", "../bm25", "--concurrency", "2", "--out", "run")
_RUN = (*_ASKED, "--tracking-uri", "none")
_COMPILE = ("compile", "searchain", "--limit", "3", "--train-limit", "6", *_RUN)
_INDEX = ("index", "../corpus.jsonl", "--kind", "dense", "--checkpoint", "../encoder", "--out", "run")
_EVALUATE = ("evaluate", "searchain", "--limit", "8", *_RUN)
_ON_RAY = ("--on", "ray", "--workers", "2")
KINDS: dict[str, tuple[str, ...]] = {
    "index": _INDEX,
    "index on ray": (*_INDEX, *_ON_RAY),
    "evaluate": _EVALUATE,
    "evaluate on ray": (*_EVALUATE, *_ON_RAY),
    "compare": ("compare", "searchain", "blendfilter", "--limit", "4", *_RUN),
    "attack": ("attack", "searchain", "--limit", "4", "--kind", "injection", *_ASKED),
    "bootstrap-random-search": (*_COMPILE, "--optimizer", "bootstrap-random-search", "--optimizer-set", "candidates=1"),
    "mipro": (
        *(*_COMPILE, "--optimizer", "mipro", "--optimizer-set", "auto=null"),
        *("--optimizer-set", "candidates=2", "--optimizer-set", "trials=3"),
    ),
    "gepa": (*_COMPILE, "--optimizer", "gepa", "--optimizer-set", "max_metric_calls=24"),
}
"""What is killed, by name; the last three are compilations. Each run has a folder of its own, and its own cache."""

PRELOADED = (
    *("questree.cli", "questree.experiment", "questree.evaluation.attacks"),
    *("torch", "faiss", "transformers.models.bert.modeling_bert"),
    *("questree.retrieval.dense", "questree.retrieval.sentence_encoder"),
)


@dataclass
class InterruptionCounts:
    """What came of it.

    Attributes:
        kind: what was killed.
        kills: that met it alive.
        runs: that were killed, once or more, and left to end in the end.
        kept: finished questions, candidates, chunks and LM replies found after the kills, each counted at every kill.
        sent: requests that the LM's server got in those runs.
        unkept: of them, those whose reply a kill kept from the client's disk.
        lost: of what was kept, what a later command had not any more.
        repeated: of what was kept, what a later command did again.
        differing: runs that ended otherwise than an uninterrupted one; how.
    """

    kind: str
    kills: int = 0
    runs: int = 0
    kept: int = 0
    sent: int = 0
    unkept: int = 0
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)


def interruption_report(kind: str, kills: int, seed: int, folder: Path) -> InterruptionCounts:
    """Kill a command so many times, each run up to `IN_A_ROW` times, and let each run end.

    It is killed as it writes its n-th file, as the n-th request comes to the LM's server, and after a time; which, is
    drawn within what a run takes that nothing interrupts.

    Args:
        kind: of `KINDS`.
        kills: how many.
        seed: of the points.
        folder: empty; the runs stay in it.
    """
    questions = [question for split in load_task("mini").questions.values() for question in split]
    mind = Mind(World(questions), Traits(malformed=0, latency=LATENCY))
    _prepare(kind, folder)
    with commands(mind, PRELOADED) as running:
        return _Report(kind, folder, running, random.Random(seed)).made(kills)


def words(kind: str, address: str) -> list[str]:
    """A command of `KINDS`, with an LM's server at this address."""
    return [*KINDS[kind]] if kind.startswith("index") else [*KINDS[kind], "--api-base", address]


class _Report:
    def __init__(self, kind: str, folder: Path, running: Commands, draw: random.Random):
        self.folder, self.running, self.draw = folder, running, draw
        self.counts = InterruptionCounts(kind)
        self.words = words(kind, running.address)

    def made(self, kills: int) -> InterruptionCounts:
        """Kill until it is enough."""
        points = self.points(self.see_it_whole())
        number = 0
        while self.counts.kills < kills:
            number += 1
            self.one_run(self.room(str(number)), points, min(IN_A_ROW, kills - self.counts.kills))
        return self.counts

    def see_it_whole(self) -> Point:
        """Run it undisturbed; its end as a point, by each measure."""
        self.running.run(["--help"], self.room("help"))  # what is imported once takes its time now
        folder = self.room("whole")
        began = time.monotonic()
        code = self.running.run(self.words, folder)
        seconds = time.monotonic() - began
        if code != 0:
            raise RuntimeError(f"questree {' '.join(self.words)}: {(folder / SAID).read_text()}")
        self.whole, self.asked = result(folder), finished(folder).replies.keys()
        return Point(seconds, self.running.engine.requests, int((folder / EVENTS).read_text()))

    def points(self, end: Point) -> Iterator[Point]:
        """Points before that end: by its files, by its requests where it asks an LM, and by its time."""
        assert end.seconds is not None
        assert end.file is not None
        while True:
            yield Point(file=self.draw.randint(1, end.file))
            if end.request:
                yield Point(request=self.draw.randint(1, end.request))
            yield Point(seconds=self.draw.uniform(0.02, 1) * end.seconds)

    def one_run(self, folder: Path, points: Iterator[Point], kills: int) -> None:
        """Kill one so many times, if it does not end before, and let it end."""
        began, there, killed = self.running.engine.requests, Finished(), 0
        while killed < kills:
            code = self.running.run(self.words, folder, next(points))
            now = finished(folder)
            self.compare(there, now, folder)
            there = now
            if code != -9:
                break
            killed += 1
            self.counts.kept += len(there)
            if self.counts.kind.startswith("index") and (folder / RUN).exists():
                code = 0  # the whole index was in its place, and only Ray was still to end
                break
        else:
            code = self.running.run(self.words, folder)
            now = finished(folder)
            self.compare(there, now, folder)
        sent = self.running.engine.requests - began
        self.counts.runs += 1
        self.counts.kills += killed
        self.counts.sent += sent
        unkept = sent - len(now.replies)
        self.counts.unkept += unkept
        if unkept > max(killed, 1) * IN_FLIGHT:
            self.counts.lost.append(f"{folder.name}: {unkept} replies after {killed} kills")
        self.judge(folder, code, now)

    def compare(self, before: Finished, now: Finished, folder: Path) -> None:
        """Whether all that had been finished is there still, and as it was."""
        for was, there in ((before.work, now.work), (before.replies, now.replies)):
            self.counts.lost += [f"{folder.name}: {name}" for name in was.keys() - there.keys()]
            self.counts.repeated += [
                f"{folder.name}: {name}" for name in was.keys() & there.keys() if was[name] != there[name]
            ]

    def judge(self, folder: Path, code: int, now: Finished) -> None:
        """Whether the run ended as the undisturbed one did."""
        if code != 0:
            self.counts.differing.append(f"{folder.name}: exit {code}: {(folder / SAID).read_text()[-500:]}")
            return
        found = result(folder)
        differ = [name for name in {*found, *self.whole} if found.get(name) != self.whole.get(name)]
        if now.replies.keys() != self.asked:
            differ.append(f"{len(now.replies.keys() ^ self.asked)} other requests")
        self.counts.differing += [f"{folder.name}: {name}" for name in differ]

    def room(self, name: str) -> Path:
        """A folder for a run."""
        folder = self.folder / name
        folder.mkdir()
        return folder


def _prepare(kind: str, folder: Path) -> None:
    """What a command of this kind takes."""
    if kind.startswith("index"):
        save_small_encoder(folder / "encoder")
        write_corpus(folder / "corpus.jsonl", PASSAGES)
    else:
        build_index(MINI_CORPUS, folder / "bm25", kind="bm25")
