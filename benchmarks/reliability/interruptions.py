"""Commands killed and stopped at random points, and run again: nothing is lost, done again, paid untold or other."""

import argparse
import json
import random
import re
import shlex
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from questree.data import MINI_CORPUS
from questree.evaluation.kept_run import match_run
from questree.evaluation.records import Record
from questree.evaluation.run_file import writing
from questree.retrieval import build_index
from questree.retrieval.indexes.contents import NAME as INDEX

from .commands import SAID, Commands, Point, commands
from .left_behind import RUN, finished, result
from .tally import Tally
from .tiny_encoders import save_encoder, write_corpus

PASSAGES = 8_000  # eight chunks
ANSWERS = 200  # of which people said something
IN_FLIGHT = 6  # requests at most: two questions at a time, three calls of each
IN_A_ROW = 3  # interruptions of one run at most, before it is left to end

_LM = "--lm openai/simulated --concurrency 2 --out run"
_ASKED = f"{_LM} --task mini --retriever ../bm25"
_RUN = f"{_ASKED} --tracking-uri none"
_INDEX = "index ../corpus.jsonl --kind dense --checkpoint ../encoder --out run"
_EVALUATE = f"evaluate searchain --limit 6 {_RUN}"
_COMPILE = f"compile searchain --limit 3 --train-limit 6 {_RUN}"
_SMALL = f"compile oner-cot --limit 3 --train-limit 6 {_RUN}"
_MADE = f"compile oner-cot --optimizer labeled-few-shot --limit 6 --train-limit 4 {_RUN}"
_QUESTION = "What is the highest mountain of the country where IKEA was founded?"

COMMANDS = {
    "index": _INDEX,
    "index on ray": f"{_INDEX} --on ray --workers 2",
    "evaluate": _EVALUATE,
    "evaluate --judge": f"evaluate oner-cot --limit 8 --judge openai/simulated {_RUN}",
    "evaluate --event-loop": f"evaluate tree-of-reviews --limit 4 --event-loop {_RUN}",
    "evaluate --repeats": f"evaluate oner-cot --limit 4 --repeats 2 --temperature 0.7 {_RUN}",
    "compare": f"compare searchain blendfilter --limit 4 {_RUN}",
    "compare --over": f"compare searchain --over max_rounds --value 2 --value 3 --limit 3 {_RUN}",
    "attack": f"attack searchain --limit 4 --kind injection {_ASKED}",
    "calibrate-reader lm": f"calibrate-reader lm {_LM} --task ../read.jsonl --split dev",
    "replay --live": f"replay ../made.capsule --live {_LM} --retriever ../bm25",
    "questions": f"questions ../linked --count 3 --list 0 --lm openai/simulated --concurrency 2 --out {RUN}/own.jsonl",
    "questions --from-feedback": f"questions --from-feedback ../kept --tracking-uri none --out {RUN}/said.jsonl",
    "ask": f"ask '{_QUESTION}' --lm openai/simulated --retriever ../bm25 --json --out run",
    **{name: f"{_SMALL} --optimizer {name}" for name in ("bootstrap-few-shot", "auto-cot", "knn-few-shot")},
    "ensemble": f"{_SMALL} --optimizer ensemble --optimizer-set candidates=1 --optimizer-set size=2",
    "infer-rules": f"{_SMALL} --optimizer infer-rules --optimizer-set candidates=2",
    "bootstrap-random-search": f"{_COMPILE} --optimizer bootstrap-random-search --optimizer-set candidates=1",
    "mipro": f"{_COMPILE} --optimizer mipro --optimizer-set auto=null --optimizer-set candidates=2 "
    "--optimizer-set trials=3",
    "gepa": f"{_COMPILE} --optimizer gepa --optimizer-set max_metric_calls=24",
}
"""What is interrupted, by name. Each run has a folder of its own, and its own cache."""

FREE = ("index", "index on ray", "questions --from-feedback")
PAYING = [name for name in COMMANDS if name not in FREE]
"""Those that tell what was paid, and are stopped by Ctrl-C and SIGTERM as well."""
_MADE_BEFORE = ("replay --live",)
_UNLIKE = ("calibrate-reader lm", *_MADE_BEFORE)  # what they write tells how many commands it took

KEEPS_NO_ACCOUNT = "ask"  # of one question: each command tells what it paid itself, and a killed one tells nothing

_TOLD = re.compile(r"LM requests: ([\d,]+) in all")
_STOPS = ((signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT))


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Interrupt long commands."""
    for kind in given.commands or COMMANDS:
        place = folder / kind.replace(" ", "-")
        place.mkdir()
        kills = 0 if kind == KEEPS_NO_ACCOUNT else given.kills
        yield f"interrupted, {kind}", interruption_report(kind, kills, given.stops, given.seed, place)


def interruption_report(kind: str, kills: int, stops: int, seed: int, folder: Path) -> Tally:
    """Kill a command so many times, stop it so many times, each run up to `IN_A_ROW` times, and let each run end.

    It is killed as the n-th request comes to the LM's server, or after a time, and stopped as the n-th request comes.
    Both are drawn within what a run takes that nothing interrupts.

    Args:
        kind: of `COMMANDS`.
        kills: how many, by SIGKILL.
        stops: how many, by Ctrl-C or SIGTERM, once or twice; none of a command that pays nothing.
        seed: of the points.
        folder: empty; the runs stay in it.
    """
    prepare(kind, folder)
    with commands() as running:
        return _Report(kind, folder, running, random.Random(seed)).made(kills, stops if kind in PAYING else 0)


def words(kind: str, address: str) -> list[str]:
    """Return a command of `COMMANDS`, with an LM's server at this address."""
    return shlex.split(COMMANDS[kind]) + ([] if kind in FREE else ["--api-base", address])


def prepare(kind: str, folder: Path) -> None:
    """Write what a command of this kind takes, but for what other commands make."""
    if kind.startswith("index"):
        save_encoder(folder / "encoder")
        write_corpus(folder / "corpus.jsonl", PASSAGES)
        return
    for index in ("bm25", "linked"):
        build_index(MINI_CORPUS, folder / index, kind=index)
    with writing(folder / "kept", "service") as kept:
        for number in range(ANSWERS):
            said = {"helpful": number % 2 == 0, "note": "no town"}
            asked = {"id": str(number), "question": f"Question {number}?", "answer": "Lindau", "answers": ["Lindau"]}
            match_run(kept, "direct", {"program": "direct"}).append(Record(**asked, extras=said), None)
    rows = [json.loads(line) for line in (MINI_CORPUS.parent / "questions.jsonl").read_text().splitlines()]
    texts = {one["title"]: one["text"] for one in map(json.loads, MINI_CORPUS.read_text().splitlines())}
    with (folder / "read.jsonl").open("w") as file:  # for a reader that is calibrated: questions with paragraphs
        for row in rows[:40]:
            given = [{"title": one, "text": texts[one], "is_supporting": True} for one in row["gold_titles"]]
            file.write(json.dumps(row | {"paragraphs": given}) + "\n")


class _Report:
    def __init__(self, kind: str, folder: Path, running: Commands, draw: random.Random):
        self.kind, self.folder, self.running, self.draw = kind, folder, running, draw
        self.tally, self.words = Tally(), words(kind, running.address)
        self.end = Point()  # of a run that nothing interrupts, by each measure; then what it gives, and its replies
        self.result, self.replies = dict[str, Any](), set[str]()

    def made(self, kills: int, stops: int) -> Tally:
        """Interrupt until it is enough."""
        if self.kind in _MADE_BEFORE:
            self.run([*_MADE.split(), "--api-base", self.running.address], "made")
            self.run(["pack", "run/after", "--out", "../made.capsule"], "made")
        self.see_it_whole()
        tried = self.tally.tried
        while (left := (kills - tried["kills"]) + (stops - tried["stops"])) > 0:
            ways = ["kills"] * (kills - tried["kills"]) + ["stops"] * (stops - tried["stops"])
            self.one_run(self.draw.sample(ways, min(IN_A_ROW, left)))
        return self.tally

    def run(self, command: list[str], name: str) -> float:
        """Run a command that nothing interrupts; return its seconds."""
        began = time.monotonic()
        if self.running.run(command, self.folder / name):
            raise RuntimeError(f"questree {' '.join(command)}: {(self.folder / name / SAID).read_text()}")
        return time.monotonic() - began

    def see_it_whole(self) -> None:
        """Run it undisturbed."""
        self.run(["--help"], "help")  # what is imported once takes its time now
        before, folder = self.running.engine.requests, self.folder / "whole"
        seconds = self.run(self.words, "whole")
        self.end = Point(seconds, self.running.engine.requests - before)
        self.result, self.replies = result(folder), {*finished(folder).replies}

    def point(self, way: str) -> Point:
        """Draw a point before the end."""
        assert self.end.seconds
        at_request = Point(request=self.draw.randint(1, max(self.end.request, 1)))
        if way == "stops":
            stops = _STOPS[:2] if self.kind == KEEPS_NO_ACCOUNT else _STOPS  # a second one may keep it from telling
            return replace(at_request, signals=self.draw.choice(stops))
        after_a_time = Point(seconds=self.draw.uniform(0.02, 1) * self.end.seconds)
        return self.draw.choice([at_request, after_a_time]) if self.end.request else after_a_time

    def one_run(self, ways: list[str]) -> None:
        """Interrupt one in these ways, if it does not end before, let it end, and judge it."""
        folder = self.folder / f"{self.tally.found['runs'] + 1}"
        began, there, times, code = self.running.engine.requests, None, 0, -1
        for way in [*ways, None]:
            code = self.running.run(self.words, folder, self.point(way) if way else Point())
            now = finished(folder)
            for name, mark in {} if there is None else (there.work | there.replies).items():
                if (now.work | now.replies).get(name) != mark:
                    self.tally.wrong.append(f"{folder.name}: {name} was lost or done again")
            there = now
            if way is None or code == 0:
                break
            times += 1
            self.tally.tried[way] += 1
            self.tally.found["finished pieces"] += len(now)
            if self.kind.startswith("index") and (folder / RUN / INDEX).exists():
                code = 0  # the whole index was in its place, and only Ray was still to end
                break
        self.tally.found["runs"] += 1
        self.judge(folder, code, self.running.engine.requests - began, times * IN_FLIGHT)

    def judge(self, folder: Path, code: int, sent: int, on_their_way: int) -> None:
        """Note where a run ended otherwise than the undisturbed one, or tells of other requests than the server saw."""
        said, wrong = (folder / SAID).read_text(), []
        if code != 0:
            self.tally.wrong.append(f"{folder.name}: exit {code}: {said[-500:]}")
            return
        if self.kind not in _UNLIKE:
            found = result(folder)
            wrong += [name for name in {*found, *self.result} if found.get(name) != self.result.get(name)]
            wrong += ["other requests"] if {*finished(folder).replies} != self.replies else []
        if self.kind in PAYING:
            each = [int(one.replace(",", "")) for one in _TOLD.findall(said)]
            told = sum(each if self.kind == KEEPS_NO_ACCOUNT else each[-1:])
            self.tally.found.update({"requests seen": sent, "told": told})
            if not 0 <= told - sent <= on_their_way:  # those noted on the disk that were cut off as they left
                wrong.append(f"{sent} requests seen, {told} told")
        self.tally.wrong += [f"{folder.name}: {one}" for one in wrong]
