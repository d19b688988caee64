"""Folders that are read back, with a file forged: each is refused by name, or what was read of it is harmless.

Who forges knows how manifests are sealed, and puts the checksums right. It is wrong if the reading raises another error
than the one for users, changes a file outside of the folder, or gives a program that asks another address.
"""

import argparse
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dspy

from questree.common.errors import QuestreeError
from questree.common.files import file_hash
from questree.common.manifests import checksum_of
from questree.optimize import load, save
from questree.programs import build
from questree.programs.composed import Lesson, NearestDemonstrations
from questree.programs.states import LMSettings
from questree.retrieval import Passage, build_index, load_index

from .small_world import small_world
from .tally import Tally

EVIL = "http://127.0.0.1:9/v1"
PREDICTOR = "step_by_step_answer"
_world = cache(small_world)

FORGED = [
    *("null", "true", "-1", "1.5", '"x"', '""', "[]", "{}", "[null]", '{"": null}'),
    *("NaN", "1e999", "9" * 5000, "[" * 100_000 + "]" * 100_000),
    *('{"a": 1, "a": 2}', r'"\ud800"', r'"\u0000"', "undefined", '"'),
    *(json.dumps({"api_base": EVIL}), '["../program.json"]', '"../../etc/passwd"'),
    json.dumps('<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'),
]
"""Texts of JSON that stand at a place where they do not belong; of the wrong kind, too large, or of no sense."""

NAMES = ("/etc/passwd", "../program.json", "a/../program.json", "sub/program.json", "program.json\n", "..", "",
         "C:program.json", "a\\program.json", "program.pkl", "/dev/zero")  # fmt: skip
"""Names of files that are none of the folder's own."""

IRREGULAR: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, aside: place.symlink_to(aside),
    "a link to a device": lambda place, aside: place.symlink_to("/dev/zero"),
    "a pipe": lambda place, aside: os.mkfifo(place),
    "a folder": lambda place, aside: place.mkdir(),
}
"""What is no regular file; it is put in a file's place, and the file itself lies aside."""


@dataclass(frozen=True)
class Kind:
    """A kind of folder.

    Attributes:
        make: writes a genuine one.
        read: reads it back and uses it.
        texts: its files of JSON, or of JSON lines.
        others: files that are not JSON.
        sealed: the manifest, if it holds checksums.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], object]
    texts: tuple[str, ...]
    others: tuple[str, ...] = ()
    sealed: str = ""


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Forge files of every kind of folder."""
    yield "forged files", forge_folders(given.forgeries, given.seed, folder)


def forge_folders(times: int, seed: int, folder: Path) -> Tally:
    """Forge so many contents of each text of each kind of folder, and put what is no file in the place of every file.

    Args:
        times: of each file; those that are drawn from all that `forgeries` can do.
        seed: of the draw.
        folder: to work in.
    """
    tally = Tally()
    for name, kind in KINDS.items():
        genuine, copy = folder / name / "genuine", folder / name / "theirs" / "copy"
        kind.make(genuine)
        for what, forge in _ways(kind, genuine, times, random.Random(f"{seed} {name}")):
            shutil.copytree(genuine, copy)
            forge(copy)
            outside = _outside(copy)
            wrong = read_forged(kind.read, copy, tally)
            wrong = wrong or ("files outside of the folder are others" if _outside(copy) != outside else "")
            tally.check(name, not wrong, f"{what}: {wrong}")
            shutil.rmtree(copy.parent)
    return tally


def read_forged(read: Callable[[Path], object], folder: Path, tally: Tally) -> str:
    """Read a forged folder back; return what is wrong with how that ends, or an empty text."""
    try:
        read(folder)
    except QuestreeError as error:
        tally.found["refused"] += 1
        return "" if folder.name in str(error) and "\n" not in str(error) else f"refused without its name: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    tally.found["harmless"] += 1
    return ""


def forgeries(content: Any) -> Iterator[tuple[str, str]]:
    """Yield what was done, and the text: at each place every forged text, nothing, a twin, and a stranger."""
    for path in _places(content):
        *above, key = path
        for text in FORGED:
            yield f"{path}: {text[:40]}", _replaced(content, path, text)
        forged = json.loads(json.dumps(content))
        del _at(forged, above)[key]
        yield f"{path} is missing", json.dumps(forged)
        if isinstance(key, str):
            value = json.dumps(_at(content, path))
            yield f"{path} stands twice", _replaced(content, path, f"{value}, {json.dumps(key)}: {value}")
            for stranger in ("api_base", "__class__"):
                yield f"{stranger!r} beside {path}", _replaced(content, path, f'{value}, "{stranger}": "{EVIL}"')


def whole(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield the whole file in other encodings, cut, and as what is no JSON."""
    for encoding in ("utf-16", "utf-8-sig"):
        yield encoding, text.encode(encoding)
    yield "latin-1", text.replace("q", "ü").encode("latin-1", errors="replace")
    yield "bytes of no text", bytes(range(256))
    for forged in (*FORGED, "", "null null", text + text, text[: len(text) // 2]):
        yield forged[:40], forged.encode()


def _places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from _places(one, *path, key)


def _at(value: Any, path: tuple[str | int, ...] | list[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _replaced(content: Any, path: tuple[str | int, ...], text: str) -> str:
    *above, key = path
    forged = json.loads(json.dumps(content))
    _at(forged, above)[key] = "@forged@"
    return json.dumps(forged).replace('"@forged@"', text)


def _ways(kind: Kind, genuine: Path, times: int, draw: random.Random) -> Iterator[tuple[str, Callable[[Path], object]]]:
    for name in kind.texts:
        text = (genuine / name).read_text()
        first, *rest = text.splitlines(keepends=True) if name.endswith(".jsonl") else [text]
        changed = [(what, (forged + "\n" + "".join(rest)).encode()) for what, forged in forgeries(json.loads(first))]
        spoilt = [*whole(text)]
        drawn = draw.sample(changed, min(times, len(changed))) + draw.sample(spoilt, min(times // 4, len(spoilt)))
        for what, content in drawn:
            yield f"{name}, {what}", lambda copy, name=name, content=content: _write(copy, kind, name, content)
    for name in (*kind.texts, *kind.others):
        for what, put in IRREGULAR.items():
            yield f"{name}, {what}", lambda copy, name=name, put=put: put_irregular(copy, name, put)
    for name in NAMES if kind.sealed and kind.others else ():
        yield f"member {name!r}", lambda copy, name=name: add_member(copy, kind.sealed, name)


def _write(folder: Path, kind: Kind, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    if kind.sealed:
        seal(folder, kind.sealed, name)


def seal(folder: Path, manifest: str, name: str) -> None:
    """Put the checksums right after a file was forged; a forged manifest stays as it is otherwise, to the letter."""
    text = (folder / manifest).read_text(encoding="latin-1")
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):  # nothing that could be sealed
        content = json.loads(text)
        before = content["checksum"]
        if name != manifest and name in content["files"]:
            size = (folder / name).stat().st_size
            content["files"][name] = {"bytes": size, "sha256": file_hash(folder / name)}
            text = json.dumps(content)
        (folder / manifest).write_text(text.replace(before, checksum_of(content)), encoding="latin-1")


def put_irregular(folder: Path, name: str, put: Callable[[Path, Path], object]) -> None:
    """Put what is no regular file in a file's place; the same content lies outside of the folder."""
    aside = folder.parent / f"aside-{Path(name).name}"
    (folder / name).rename(aside)
    put(folder / name, aside)


def add_member(folder: Path, manifest: str, name: str) -> None:
    """List a file of this name, which is none of the folder's, in a manifest."""
    content = json.loads((folder / manifest).read_text())
    some = next(iter(content["files"]))
    content["files"][name] = content["files"][some]
    (folder.parent / "program.json").write_bytes((folder / some).read_bytes())
    (folder / manifest).write_text(json.dumps(content | {"checksum": checksum_of(content)}))


def _outside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.parent.iterdir() if path.is_file()}


# What is made, and how it is read back


def make_program(folder: Path) -> Path:
    """Save a program of one call, with a demonstration of its own and one that it chooses by question."""
    program = build("cot", {})
    program.predictors()[0].demos = [dspy.Example(question="q", answer="a", final_content="c", augmented=True)]
    lesson = Lesson(inputs={"question": "Who?"}, demonstrations={PREDICTOR: [{"question": "q", "answer": "a"}]})
    return save(NearestDemonstrations(program, [lesson], 1), folder)


def read_program(folder: Path) -> None:
    """Load a program; it may differ from one of the code in its prompts, and in how it samples; and ask it."""
    program, as_coded = load(folder), build("cot", {}).predictors()[0]
    for predictor in program.predictors():
        assert predictor.lm is None, "it has an LM of its own"
        assert predictor.config.keys() <= LMSettings.model_fields.keys(), "it sets what no file may"
        assert vars(predictor).keys() == vars(as_coded).keys(), "it holds what no program holds"
    examples, _, engine = _world()
    with dspy.context(lm=dspy.LM("simulated/forged", engine=engine, cache=False), adapter=None):
        assert program(**examples[0].inputs()).spent.calls >= 1


PASSAGES = [Passage(id=f"p{n}", title="amber", text=f"harbor {n}") for n in range(5)]


def _read_index(folder: Path) -> None:
    for passage in load_index(folder)("amber harbor", k=2):
        passage.shown()


KINDS = {
    "program": Kind(make_program, read_program, ("questree.json",), sealed="questree.json"),
    "index": Kind(
        lambda folder: build_index(PASSAGES, folder, kind="bm25"),
        _read_index,
        ("version-1/passages.jsonl", "questree-index.json"),
        ("version-1/passages.offsets.npy",),
        sealed="questree-index.json",
    ),
}
