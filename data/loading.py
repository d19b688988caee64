"""Finds a task by name or path, and loads it."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ..retrieval.errors import QuestreeError
from .known_tasks import KNOWN_TASKS, KnownTask
from .question_files import read_questions
from .task import SPLITS, Question, Task

DATA_VARIABLE = "QUESTREE_DATA"
"""The environment variable that names the folder of task files."""

_MINI = Path(__file__).parent / "mini"
MINI_CORPUS = _MINI / "corpus.jsonl"
"""The passages of the bundled set."""


def load_task(
    name_or_path: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    corpus: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Task:
    """A task with its questions.

    Args:
        name_or_path: ``mini`` (bundled); the name of a JSONL file in the data folder, without its ending; or
            the path of any JSONL file of that shape. ``name:origin`` keeps the questions of one data set of a
            file that holds several: ``recorded:musique``.
        split: load only this one of train, dev and test.
        limit: keep so many questions of each split. The first 10 of a seed are the first 10 of its first 20.
        seed: orders the questions of each split; it never moves one to another split.
        corpus: the file of passages, where the one that lies beside the task is not meant.
        data_dir: the data folder; by default what the environment variable ``QUESTREE_DATA`` names.

    Raises:
        QuestreeError: if there is no such task, split, origin or corpus, or the file is faulty.
    """
    if split is not None and split not in SPLITS:
        raise QuestreeError(f"There is no split {split!r}. Choose one of: {', '.join(SPLITS)}.")
    if limit is not None and limit < 1:
        raise QuestreeError(f"A limit of {limit} leaves no questions: give 1 or more.")
    folder = _data_folder(data_dir)
    path, origin = _find(str(name_or_path), folder)
    questions = _of_origin(read_questions(path), origin, path)
    name = "mini" if path.parent == _MINI else path.stem
    task = _task(name if origin is None else f"{name}:{origin}", questions, KNOWN_TASKS.get(name))
    kept = [s for s in SPLITS if split in {None, s}]
    loaded = task.model_copy(
        update={
            "questions": {s: _sample((q for q in questions if q.split == s), limit, seed) for s in kept},
            "corpus": _corpus(corpus, path, questions),
        }
    )
    if split is not None and not loaded.questions[kept[0]]:
        task.split(split)  # says which splits there are
    return loaded


def task_names(data_dir: str | Path | None = None) -> list[str]:
    """The names that `load_task` takes: the bundled set, and the files of the data folder."""
    folder = _data_folder(data_dir)
    return ["mini", *sorted(file.stem for file in folder.glob("*.jsonl"))] if folder else ["mini"]


def _data_folder(data_dir: str | Path | None) -> Path | None:
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise QuestreeError(f"The data folder {folder} does not exist (set by data_dir or {DATA_VARIABLE}).")
    return folder


def _find(wanted: str, folder: Path | None) -> tuple[Path, str | None]:
    """The file of a task, and the origin that it is narrowed to."""
    if Path(wanted).is_file():
        return Path(wanted), None
    place, _, origin = wanted.rpartition(":") if ":" in wanted else (wanted, "", "")
    candidates = [Path(place)] if place != wanted else []
    if place == "mini":
        candidates.append(_MINI / "questions.jsonl")
    elif folder:
        candidates.append(folder / f"{place}.jsonl")
    for candidate in candidates:
        if candidate.is_file():
            return candidate, origin or None
    raise QuestreeError(_not_found(wanted, place, folder))


def _not_found(wanted: str, place: str, folder: Path | None) -> str:
    if place in KNOWN_TASKS and folder is None:
        return (
            f"The questions of {place!r} do not come with questree: put {place}.jsonl into a folder and set "
            f"{DATA_VARIABLE} to it, or give the path of the file."
        )
    names = task_names(folder)
    advice = f"Known here: {', '.join(names)}."
    if nearest := difflib.get_close_matches(place, [*names, *KNOWN_TASKS], n=1):
        advice = f"Nearest: {nearest[0]!r}. {advice}"
    if folder is None:
        advice += f" More in a data folder: set {DATA_VARIABLE} to it, or give the path of a JSONL file."
    else:
        advice += f" Put {Path(place).stem}.jsonl into {folder}, or give the path of a JSONL file."
    return f"There is no task {wanted!r}. {advice}"


def _of_origin(questions: list[Question], origin: str | None, path: Path) -> list[Question]:
    if origin is None:
        return questions
    if kept := [question for question in questions if question.task == origin]:
        return kept
    origins = ", ".join(sorted({question.task for question in questions}))
    raise QuestreeError(f"{path} has no questions of {origin!r}; it has those of: {origins}.")


def _task(name: str, questions: list[Question], known: KnownTask | None) -> Task:
    by_split = {s: tuple(q for q in questions if q.split == s) for s in SPLITS}
    styles = {question.style for question in questions}
    style = styles.pop() if len(styles) == 1 else "mixed"
    if known is None:
        return Task(name=name, style=style, metric="by-style", questions=by_split)
    return Task(
        name=name,
        style=known.style,
        metric=known.metric,
        questions=by_split,
        licence=known.licence,
        citation=known.citation,
        source=known.source,
    )


def _sample(questions: Iterable[Question], limit: int | None, seed: int) -> tuple[Question, ...]:
    def place(question: Question) -> bytes:
        return hashlib.sha256(f"{seed}:{question.id}".encode()).digest()

    return tuple(sorted(questions, key=place)[:limit])


def _corpus(given: str | Path | None, path: Path, questions: list[Question]) -> Path | None:
    """The corpus as given, else the bundled one, else the one that is named after the questions' data set."""
    if given is not None:
        if not Path(given).is_file():
            raise QuestreeError(f"The corpus {given} does not exist.")
        return Path(given)
    if path.parent == _MINI:
        return _MINI / "corpus.jsonl"
    origins = {question.task for question in questions}
    beside = path.parent / "corpora" / f"{origins.pop()}.jsonl"
    return beside if not origins and beside.is_file() else None
