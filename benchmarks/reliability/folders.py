"""Folders of documents that change, and kills of the command that follows them: its index is that of a fresh build."""

import argparse
import hashlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

from questree.retrieval import read_manifest
from questree.retrieval.indexes.construction import MARK

from .commands import Commands, Point, commands
from .tally import Tally
from .tiny_encoders import WORDS, save_encoder

DOCUMENTS = 12
PARAGRAPHS = 120  # of a document: two chunks of passages in all
KINDS = {"dense": "--kind dense --checkpoint ../encoder", "bm25": "--kind bm25", "linked": "--kind linked"}


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Change folders, and kill the command that indexes them."""
    save_encoder(folder / "encoder")
    with commands() as running:
        for kind in KINDS:
            yield f"kill -9, documents, {kind}", followed(kind, given.kills, given.seed, folder / kind, running)


def followed(kind: str, kills: int, seed: int, folder: Path, running: Commands) -> Tally:
    """Change the documents again and again, kill the command at drawn times, and compare its index with a fresh one.

    Args:
        kind: of `KINDS`.
        kills: how many.
        seed: of the documents, their changes and the times.
        folder: holds the documents; the encoder is beside it.
        running: runs the commands.
    """
    tally, draw, docs = Tally(), random.Random(seed), folder / "docs"
    docs.mkdir(parents=True)
    for number in range(DOCUMENTS):
        (docs / f"{number:02d}.md").write_text(_text(draw))
    words = f"index docs {KINDS[kind]} --out".split()
    _run(running, [*words, "ix"], folder)
    while tally.tried["kills"] < kills:
        before = _contents(folder / "ix")
        _change(docs, draw, tally)
        began = time.monotonic()
        _run(running, [*words, f"fresh{tally.found['changes']}"], folder)
        seconds, fresh = time.monotonic() - began, _contents(folder / f"fresh{tally.found['changes']}")
        for _ in range(draw.randint(1, 3)):
            if running.run([*words, "ix"], folder, Point(seconds=draw.uniform(0.02, 1) * seconds)) == 0:
                break
            tally.check(
                "kills", _contents(folder / "ix") in (before, fresh), f"{kind}: neither the old index nor the new"
            )
        _run(running, [*words, "ix"], folder)
        found = _contents(folder / "ix")
        different = [name for name in {*found, *fresh} if found.get(name) != fresh.get(name)]
        tally.found["differences to a fresh build"] += len(different)
        tally.wrong += [f"{kind}: {name} differs" for name in different]
    return tally


def _run(running: Commands, words: list[str], folder: Path) -> None:
    if running.run(words, folder):
        raise RuntimeError(f"questree {' '.join(words)}: {(folder / 'said.txt').read_text()[-2000:]}")


def _text(draw: random.Random) -> str:
    told = (" ".join(draw.choices(WORDS, k=12)) for _ in range(PARAGRAPHS))
    return "\n\n".join(f"## {draw.choice(WORDS)}\n\n{one}." for one in told)


def _change(docs: Path, draw: random.Random, tally: Tally) -> None:
    """Add, change, delete or rename a document, or several."""
    for number in range(draw.randint(1, 3)):
        there = sorted(docs.iterdir())
        one, name = draw.choice(there), f"{draw.randrange(100):02d}-{tally.found['changes']}{number}.md"
        way = draw.choice(["add", "change", "rename", "delete" if len(there) > DOCUMENTS // 2 else "add"])
        if way == "add":
            (docs / name).write_text(_text(draw))
        elif way == "change":
            paragraphs = one.read_text().split("\n\n")
            place = draw.randrange(len(paragraphs))
            one.write_text("\n\n".join([*paragraphs[:place], "the tree lies by the water.", *paragraphs[place:]]))
        elif way == "rename":
            one.rename(docs / name)
        else:
            one.unlink()
    tally.found["changes"] += 1


def _contents(index: Path) -> dict[str, str]:
    """Return the hash of each file of the version that an index is, and the fingerprint of the index."""
    manifest = read_manifest(index, full=True)
    version = index / manifest.version
    paths = [path for path in sorted(version.rglob("*")) if path.is_file() and path.name != MARK]
    hashes = {path.relative_to(version).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return hashes | {"fingerprint": manifest.fingerprint}
