"""Commands that pay, killed and stopped: the requests that the server saw against those that the last one tells of."""

from __future__ import annotations

import json
import multiprocessing
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from questree.data import MINI_CORPUS, load_task
from questree.retrieval import build_index
from questree.simulate import Mind, Traits, World

from .interruptions import IN_A_ROW, IN_FLIGHT, PRELOADED
from .killing import LATENCY, PATIENCE, SAID, run_command
from .till import Till, till

_LM = ("--lm", "openai/simulated", "--concurrency", "2")
_ASKED = (*_LM, "--task", "mini", "--retriever", "../bm25", "--out", "run")
_RUN = (*_ASKED, "--tracking-uri", "none")
_COMPILE = ("compile", "searchain", "--limit", "2", "--train-limit", "5", *_RUN)
MADE = ("compile", "oner-cot", "--optimizer", "labeled-few-shot", "--limit", "6", "--train-limit", "4", *_RUN)
"""Makes what `recheck` and `replay` take."""
PAYING: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", "searchain", "--limit", "6", *_RUN),
    "evaluate --judge": ("evaluate", "oner-cot", "--limit", "8", "--judge", "openai/simulated", *_RUN),
    "evaluate --event-loop": ("evaluate", "tree-of-reviews", "--limit", "4", "--event-loop", *_RUN),
    "evaluate --repeats": ("evaluate", "oner-cot", "--limit", "4", "--repeats", "2", "--temperature", "0.7", *_RUN),
    "compare": ("compare", "oner-cot", "blendfilter", "--limit", "3", *_RUN),
    "ablate": (
        *("ablate", "searchain", "--over", "min_independent_passages", "--value", "0", "--value", "1", "--limit", "3"),
        *_RUN,
    ),
    "attack --writer lm": ("attack", "oner-cot", "--limit", "3", "--planted", "2", "--writer", "lm", *_ASKED),
    "calibrate-reader lm": (
        "calibrate-reader",
        "lm",
        *_LM,
        "--task",
        "../read.jsonl",
        "--split",
        "dev",
        "--out",
        "run",
    ),
    "recheck": ("recheck", "../made/run/program", *_LM, "--retriever", "../bm25", "--out", "run"),
    "replay --live": ("replay", "../made.capsule", "--live", *_LM, "--retriever", "../bm25", "--out", "run"),
    "bootstrap-random-search": (*_COMPILE, "--optimizer", "bootstrap-random-search", "--optimizer-set", "candidates=1"),
    "copro": (*_COMPILE, "--optimizer", "copro", "--optimizer-set", "breadth=2", "--optimizer-set", "depth=1"),
    "mipro": (
        *(*_COMPILE, "--optimizer", "mipro", "--optimizer-set", "auto=null"),
        *("--optimizer-set", "candidates=2", "--optimizer-set", "trials=2"),
    ),
    "gepa": (*_COMPILE, "--optimizer", "gepa", "--optimizer-set", "max_metric_calls=16"),
}
"""What pays, by name."""

_TOLD = re.compile(r"LM requests: ([\d,]+) in all")
_STOPS = ((signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT))


@dataclass
class MoneyCounts:
    """What came of it.

    Attributes:
        kind: of `PAYING`.
        kills: that met the command alive, and stops (Ctrl-C and SIGTERM, once or twice).
        runs: that were left to end in the end.
        seen: requests that the server got in those runs.
        noted: requests that were noted on the disk, and that the server never got: killed as they left.
        differing: runs that told of fewer, or of more than were on their way at their ends, or did not end well.
    """

    kind: str
    kills: int = 0
    stops: int = 0
    runs: int = 0
    seen: int = 0
    noted: int = 0
    differing: list[str] = field(default_factory=list)


def money_report(kind: str, kills: int, stops: int, seed: int, folder: Path) -> MoneyCounts:
    """Kill a command so many times and stop it so many times, each run up to `IN_A_ROW` times; let each run end.

    Args:
        kind: of `PAYING`.
        kills, stops: how many.
        seed: of the requests at which that happens.
        folder: empty; the runs stay in it.
    """
    counts, draw = MoneyCounts(kind), random.Random(seed)
    with paying(folder) as (counter, run):
        whole = _ended(counts, counter, run, folder / "whole", [])
        while counts.kills < kills or counts.stops < stops:
            left = kills - counts.kills, stops - counts.stops
            stop = _STOPS[counts.stops % len(_STOPS)]  # each in turn
            ways = [*[(signal.SIGKILL,)] * max(left[0], 0), *[stop] * max(left[1], 0)]
            points = [(draw.randint(1, max(whole, 1)), draw.choice(ways)) for _ in range(min(IN_A_ROW, len(ways)))]
            _ended(counts, counter, run, folder / str(counts.runs), points)
    return counts


Run = Callable[[list[str], Path, tuple[int, tuple[int, ...]] | None], int]


@contextmanager
def paying(folder: Path) -> Iterator[tuple[Till, Run]]:
    """Run the server, and give it with what runs a command in a folder and sends it signals at the n-th request."""
    questions = [question for split in load_task("mini").questions.values() for question in split]
    build_index(MINI_CORPUS, folder / "bm25", kind="bm25")
    passages = [(f"Town {number}", f"The river of Town {number} is the River {number}.") for number in range(24)]
    rows = [
        {
            **{"id": f"river-{number}", "question": question, "answers": [f"River {number}"]},
            "split": ("dev", "test")[number % 2],
            "steps": [{"question": question, "answer": f"River {number}", "support_title": title}],
            "paragraphs": [{"title": title, "text": text, "is_supporting": True}],
        }
        for number, (title, text) in enumerate(passages)
        for question in [f"Which river flows through {title}?"]
    ]
    (folder / "read.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with till(Mind(World(questions), Traits(malformed=0.05, latency=LATENCY))) as counter:

        def run(words: list[str], place: Path, point: tuple[int, tuple[int, ...]] | None) -> int:
            place.mkdir(exist_ok=True)
            process = context.Process(target=run_command, args=(words, place, None))
            if point is not None:
                counter.signal_at(point[0], lambda: process.pid, *point[1])
            process.start()
            process.join(PATIENCE)
            counter.forget()
            if process.is_alive():
                process.kill()
                raise RuntimeError(f"questree {' '.join(words)}: hangs: {(place / SAID).read_text()[-2000:]}")
            return process.exitcode or 0

        yield counter, run


def _ended(counts: MoneyCounts, counter: Till, run: Run, place: Path, points: list[tuple[int, tuple[int, ...]]]) -> int:
    """Interrupt a run at these points, let it end and compare; return the requests that the server saw."""
    words = [*PAYING[counts.kind], "--api-base", counter.address]
    if counts.kind in ("recheck", "replay --live"):
        _make(counter, run, place.parent)
    began = counter.requests
    for point in points:
        code = run(words, place, point)
        if code == 0:  # it had ended before
            break
        killed = point[1] == (signal.SIGKILL,)
        counts.kills, counts.stops = counts.kills + killed, counts.stops + (not killed)
    else:
        code = run(words, place, None)
    seen, said = counter.requests - began, (place / SAID).read_text()
    told = [int(one.replace(",", "")) for one in _TOLD.findall(said)]
    more = told[-1] - seen if told else 0
    counts.runs, counts.seen, counts.noted = counts.runs + 1, counts.seen + seen, counts.noted + max(more, 0)
    if code != 0 or not told or not 0 <= more <= len(points) * IN_FLIGHT:
        counts.differing.append(f"{place.name} {points}: exit {code}, seen {seen}, told {told}: {said[-300:]}")
    return seen


def _make(counter: Till, run: Run, folder: Path) -> None:
    """Make a compiled program and a capsule, if they are not there yet."""
    if not (folder / "made.capsule").exists():
        place = folder / "made"
        code = run([*MADE, "--api-base", counter.address], place, None)
        code = code or run(["pack", "run/after", "--out", "../made.capsule"], place, None)
        if code:
            raise RuntimeError((place / SAID).read_text())
