"""Bytes changed in what is kept on disk: each is noticed, and the folder named; no answer is ever another one."""

import argparse
import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import dspy

from questree.common.errors import QuestreeError
from questree.data import MINI_CORPUS
from questree.lm.kept_replies import use_lm_cache
from questree.optimize import load, save
from questree.programs import build
from questree.retrieval import DenseSettings, build_index, load_index

from .small_world import WatchedEngine, small_world
from .tally import Tally
from .tiny_encoders import save_encoder

QUESTIONS = 8


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Change bytes of an artifact, of indexes and of the LM's kept replies."""
    index = build_index(MINI_CORPUS, folder / "bm25", kind="bm25")
    retriever = load_index(index)
    program = save(build("searchain", {}, retriever=retriever), folder / "program")
    yield "bytes of an artifact", corrupt(program, given.bytes, given.seed, lambda: load(program, retriever=retriever))
    dense = {"checkpoint": save_encoder(folder / "encoder"), "settings": DenseSettings(window=64)}
    for kind, options in {"bm25": {}, "exact": {}, "colbert": {}, "dense": dense}.items():
        place = folder / kind
        if kind != "bm25":
            build_index(MINI_CORPUS, place, kind=kind, **options)
        yield f"bytes of an index, {kind}", corrupt(place, given.bytes, given.seed, partial(load_index, place))
    yield "bytes of the LM cache", corrupt_replies(folder / "replies", 10 * given.bytes, given.seed)


def corrupt(folder: Path, cases: int, seed: int, reload: Callable[[], object]) -> Tally:
    """Change bytes of every file of a folder, one at a time, and load it each time; the folder is as it was then.

    White space between JSON's tokens is left out, as it says nothing.
    """
    draw, tally = random.Random(seed), Tally()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for position in (draw.randrange(len(content)) for _ in range(cases if content else 0)):
            old, new = content[position], draw.choice([byte for byte in range(256) if byte != content[position]])
            if file.suffix == ".json" and bytes([old]).isspace() and bytes([new]).isspace():
                continue
            file.write_bytes(content[:position] + bytes([new]) + content[position + 1 :])
            tally.check(file.relative_to(folder).as_posix(), _refuses(reload, folder), f"byte {position}")
        file.write_bytes(content)
    return tally


def _refuses(reload: Callable[[], object], folder: Path) -> bool:
    try:
        reload()
    except QuestreeError as error:
        return str(folder) in str(error)
    return False


def corrupt_replies(folder: Path, cases: int, seed: int = 0) -> Tally:
    """Keep the replies to some questions, change a byte of their database, and ask again, so many times."""
    examples, _, simulated = small_world()
    engine = WatchedEngine(simulated.mind)
    kept, changed = folder / "kept", folder / "changed"
    draw, tally = random.Random(seed), Tally()
    with dspy.context(lm=dspy.LM("simulated/kept", engine=engine), adapter=None):
        answers = _ask(kept, examples[:QUESTIONS])
        (database,) = (file.relative_to(kept) for file in kept.rglob("replies.db"))
        for _ in range(cases):
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(kept, changed)
            where, before = _change_a_byte(changed / database, draw), engine.requests
            try:
                now = _ask(changed, examples[:QUESTIONS])
            except QuestreeError as error:
                tally.found["refused"] += 1
                tally.check("byte", str(changed) in str(error), f"{where}: {error}")
            else:
                tally.found["asked again" if engine.requests > before else "without effect"] += 1
                tally.check("byte", now == answers, f"{where}: {now}")
    return tally


def _ask(cache: Path, examples: list[dspy.Example]) -> list[str]:
    """Return the answers, with a cache in this folder and none in memory."""
    with patch.dict(os.environ, QUESTREE_CACHE=str(cache)):
        use_lm_cache()
    program = build("direct", {})
    predictions = [program(**example.inputs()) for example in examples]
    dspy.cache.disk_cache.close()
    return [f"{prediction.answer}{prediction.failure or ''}" for prediction in predictions]


def _change_a_byte(file: Path, draw: random.Random) -> str:
    content = bytearray(file.read_bytes())
    position = draw.choice([at for at, byte in enumerate(content) if byte])  # none of a page's empty space
    content[position] ^= draw.randrange(1, 256)
    file.write_bytes(content)
    return f"{file.parent.name}/{file.name} at {position}"
