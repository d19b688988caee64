"""Bytes changed in the LM's kept replies: what was changed is asked for again or refused, and is never an answer."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import dspy

from questree.common.errors import QuestreeError
from questree.lm.kept_replies import use_lm_cache
from questree.programs.registry import build

from .killing import Counting
from .small_world import small_world

QUESTIONS = 8


@dataclass
class CacheCounts:
    """What came of it.

    Attributes:
        tried: single bytes changed, one at a time; none of a page's empty space.
        asked_again: of them, those after which a reply came from the LM once more.
        refused: those after which the cache was refused, under its folder's name.
        without_effect: those after which every reply came from the cache, as it was.
        wrong: those after which an answer was another one, or anything else went wrong; how.
    """

    tried: int = 0
    asked_again: int = 0
    refused: int = 0
    without_effect: int = 0
    wrong: list[str] = field(default_factory=list)


def corrupt_replies(folder: Path, cases: int, seed: int = 0) -> CacheCounts:
    """Keep the replies to some questions, change a byte of a database, and ask again, so many times.

    Args:
        folder: empty; the replies are kept in it.
        cases: bytes.
        seed: of the bytes.
    """
    examples, _, simulated = small_world()
    engine = Counting(simulated.mind)
    kept, changed = folder / "kept", folder / "changed"
    draw, counts = random.Random(seed), CacheCounts()
    with dspy.context(lm=dspy.LM("simulated/kept", engine=engine), adapter=None):
        answers = _ask(kept, examples[:QUESTIONS])
        databases = sorted(file.relative_to(kept) for file in kept.rglob("cache.db"))
        for _ in range(cases):
            shutil.rmtree(changed, ignore_errors=True)
            shutil.copytree(kept, changed)
            where = _change_a_byte(changed, databases, draw)
            before = engine.requests
            try:
                now = _ask(changed, examples[:QUESTIONS])
            except QuestreeError as error:
                counts.refused += str(changed) in str(error)
                counts.wrong += [] if str(changed) in str(error) else [f"{where}: {error}"]
            except Exception as error:
                counts.wrong.append(f"{where}: {type(error).__name__}: {error}")
            else:
                counts.wrong += [] if now == answers else [f"{where}: {now}"]
                counts.asked_again += engine.requests > before
                counts.without_effect += engine.requests == before
            counts.tried += 1
    return counts


def _ask(cache: Path, examples: list[dspy.Example]) -> list[str]:
    """The answers, with a cache in this folder and none in memory."""
    with patch.dict(os.environ, QUESTREE_CACHE=str(cache)):
        use_lm_cache()
    program = build("direct", {})
    predictions = [program(**example.inputs()) for example in examples]
    dspy.cache.disk_cache.close()
    return [f"{prediction.answer}{prediction.failure or ''}" for prediction in predictions]


def _change_a_byte(folder: Path, databases: list[Path], draw: random.Random) -> str:
    file = folder / draw.choice(databases)
    content = bytearray(file.read_bytes())
    position = draw.choice([at for at, byte in enumerate(content) if byte])
    content[position] ^= draw.randrange(1, 256)
    file.write_bytes(content)
    return f"{file.relative_to(folder)} at {position}"
