"""Folders that are read back, with a file forged: each is refused by name, or what was read of it is harmless.

Who forges knows how manifests are sealed, and puts the checksums right. It is wrong if the reading raises another error
than the one for users, hangs, changes a file outside of the folder, or gives a program that asks another address.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import dspy

from questree.common.errors import QuestreeError
from questree.common.files import file_hash
from questree.common.manifests import checksum_of
from questree.data.question_files import read_questions
from questree.evaluation.kept_run import begin
from questree.evaluation.run import evaluate
from questree.evaluation.run_file import writing
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.metrics import metric
from questree.optimize import load, save
from questree.programs import Program, build
from questree.programs.composed import Lesson, NearestDemonstrations
from questree.programs.states import LMSettings
from questree.retrieval import DPRReader, Passage, build_index, load_index
from questree.retrieval.calibrated import ReaderManifest, store
from questree.retrieval.span_model import SpanModel

from .forging import IRREGULAR, NAMES, forgeries, whole
from .small_encoder import save_small_encoder
from .small_world import small_world

PREDICTOR = "step_by_step_answer.answer"
PATIENCE = 30.0  # seconds of a reading; it takes a fraction of one
_world = cache(small_world)
PASSAGES = [Passage(id=f"p{n}", title="amber", text=f"harbor {n}") for n in range(5)]


@dataclass
class Forged:
    """How many files of each kind of folder were forged, how many were refused, and what went wrong."""

    tried: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


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


def forge_folders(times: int, seed: int, folder: Path) -> Forged:
    """Forge so many contents of each text of each kind of folder, and put what is no file in the place of every file.

    Args:
        times: of each file; those that are drawn from all that `forging` can do.
        seed: of the draw.
        folder: to work in.
    """
    found = Forged()
    for name, kind in KINDS.items():
        genuine, copy = folder / name / "genuine", folder / name / "theirs" / "copy"
        kind.make(genuine)
        for what, forge in _ways(kind, genuine, times, random.Random(f"{seed} {name}")):
            shutil.copytree(genuine, copy)
            forge(copy)
            _try(f"{name}, {what}", kind, copy, found)
            found.tried[name] += 1
            shutil.rmtree(copy.parent)
    return found


def _ways(kind: Kind, genuine: Path, times: int, draw: random.Random) -> Iterator[tuple[str, Callable[[Path], object]]]:
    for name in kind.texts:
        text = (genuine / name).read_text()
        first, *rest = text.splitlines(keepends=True) if name.endswith(".jsonl") else [text]
        changed = [(what, (forged + "\n" + "".join(rest)).encode()) for what, forged in forgeries(json.loads(first))]
        for what, content in draw.sample(changed, min(times, len(changed))) + draw.sample([*whole(text)], times // 4):
            yield f"{name}, {what}", lambda copy, name=name, content=content: _write(copy, kind, name, content)
    for name in (*kind.texts, *kind.others, *([kind.sealed] if kind.sealed else [])):
        for what, put in IRREGULAR.items():
            yield f"{name}, {what}", lambda copy, name=name, put=put: _put(copy, name, put)
        yield f"{name}, another byte", lambda copy, name=name: _spoil(copy / name)
    for name in NAMES if kind.sealed else ():
        yield f"member {name!r}", lambda copy, name=name: _add_member(copy, kind, name)


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
            text = json.dumps(content := _with_record(content, folder, name))
        (folder / manifest).write_text(text.replace(before, checksum_of(content)), encoding="latin-1")


def _with_record(manifest: dict[str, Any], folder: Path, name: str) -> dict[str, Any]:
    checksum, size = file_hash(folder / name), (folder / name).stat().st_size
    record = checksum if isinstance(manifest["files"][name], str) else {"bytes": size, "sha256": checksum}
    return {**manifest, "files": {**manifest["files"], name: record}}


def _put(folder: Path, name: str, put: Callable[[Path, Path], object]) -> None:
    aside = folder.parent / f"aside-{Path(name).name}"  # the same content, outside of the folder
    (folder / name).rename(aside)
    put(folder / name, aside)


def _spoil(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(b"\0" + content[1:])


def _add_member(folder: Path, kind: Kind, name: str) -> None:
    manifest = json.loads((folder / kind.sealed).read_text())
    some = next(iter(manifest["files"]))
    manifest["files"][name] = manifest["files"][some]
    if "members" in manifest:
        manifest["members"] = [name]
    (folder.parent / "program.json").write_bytes((folder / some).read_bytes())
    manifest["checksum"] = checksum_of(manifest)
    (folder / kind.sealed).write_text(json.dumps(manifest))


def _try(what: str, kind: Kind, folder: Path, found: Forged) -> None:
    """Read the folder back, and count what came of it."""
    outside, ended = _outside(folder), list[BaseException | None]()
    thread = threading.Thread(target=lambda: ended.append(_error_of(kind.read, folder)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    error = ended[0] if ended else TimeoutError("it hangs")
    if isinstance(error, QuestreeError):
        found.refused += 1
        if folder.name not in str(error) or "\n" in str(error):
            found.wrong.append(f"{what}: refused without its name: {error}")
    elif error is not None:
        found.wrong.append(f"{what}: {type(error).__name__}: {error}")
    if _outside(folder) != outside:
        found.wrong.append(f"{what}: files outside of the folder are others")


def _error_of(read: Callable[[Path], object], folder: Path) -> BaseException | None:
    try:
        read(folder)
    except BaseException as error:
        return error
    return None


def _outside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.parent.iterdir() if path.is_file()}


# What is made, and how it is read back


def _make_program(folder: Path) -> None:
    program = build("cot", {})
    program.predictors()[0].demos = [dspy.Example(question="q", answer="a", final_content="c", augmented=True)]
    lesson = Lesson(inputs={"question": "Who?"}, demonstrations={PREDICTOR: [{"question": "q", "answer": "a"}]})
    save(NearestDemonstrations(program, [lesson], 1), folder)


def _read_program(folder: Path) -> None:
    program = load(folder)
    check_harmless(program)


def check_harmless(program: Any) -> None:
    """Check that a loaded program differs from one of the code in its prompts, and in how it samples; and ask it."""
    as_coded = build("cot", {}).predictors()[0]
    for predictor in program.predictors():
        assert predictor.lm is None, "it has an LM of its own"
        assert predictor.config.keys() <= LMSettings.model_fields.keys(), "it sets what no file may"
        assert vars(predictor).keys() == vars(as_coded).keys(), "it holds what no program holds"
    examples, _, engine = _world()
    with dspy.context(lm=dspy.LM("simulated/forged", engine=engine, cache=False), adapter=None):
        assert program(**examples[0].inputs()).spent.calls >= 1


def _asked() -> tuple[Program, list[dspy.Example], dspy.LM]:
    examples, _, engine = _world()
    return build("cot", {}), examples[:3], dspy.LM("simulated/forged", engine=engine, cache=False)


def _make_run(folder: Path) -> None:
    program, examples, lm = _asked()
    with dspy.context(lm=lm, adapter=None):
        evaluate(program, examples, metric("by-style"), task="mini", out=folder)


def _read_run(folder: Path) -> None:
    program, _, lm = _asked()
    (run,) = stored_runs([folder])
    score = metric(run.evaluation.metric)
    for record in read_records(folder):
        score(record, record.prediction)
    assert run.simulated in (True, False)
    with dspy.context(lm=lm, adapter=None), writing(folder, "evaluation") as file:
        assert begin(file, "cot", program, "mini").earlier


def _make_index(folder: Path) -> None:
    build_index(PASSAGES, folder, kind="bm25")


def _read_index(folder: Path) -> None:
    for passage in load_index(folder)("amber harbor", k=2):
        passage.shown()


def _make_reader(folder: Path) -> None:
    save_small_encoder(folder.parent / "encoder")
    model, tokenizer = SpanModel.on_encoder(folder.parent / "encoder", device="cpu")
    model.save(folder, tokenizer)
    store(folder, ReaderManifest(kind="spans", threshold=1.0))


def _read_reader(folder: Path) -> None:
    DPRReader.load(folder, device="cpu")("amber", PASSAGES[0])


def _make_questions(folder: Path) -> None:
    folder.mkdir(parents=True)
    row = {"id": "1", "task": "theirs", "question": "Where is the amber?", "answers": ["basin"], "style": "short"}
    steps = [{"question": "Where?", "answer": "basin", "support_title": "amber"}]
    more = {"type": "bridge", "hops": 2, "gold_titles": ["amber"], "steps": steps, "split": "dev", "position": 1}
    row |= {**more, "answers_are_regex": True, "paragraphs": [{"title": "amber", "text": "basin"}]}
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n")


def _read_questions(folder: Path) -> None:
    score = metric("by-style")
    for question in read_questions(folder / "questions.jsonl"):
        score(question.to_example(), dspy.Prediction(answer="a basin of amber", final_content=""))


KINDS = {
    "program": Kind(
        _make_program, _read_program, ("program.json", "lessons.json", "questree.json"), sealed="questree.json"
    ),
    "run": Kind(_make_run, _read_run, (), ("runs.db",)),
    "index": Kind(
        _make_index,
        _read_index,
        ("passages.jsonl", "questree-index.json"),
        ("passages.offsets.npy",),
        sealed="questree-index.json",
    ),
    "reader": Kind(_make_reader, _read_reader, ("questree-reader.json",), ("model.safetensors",)),
    "questions": Kind(_make_questions, _read_questions, ("questions.jsonl",)),
}
