"""The loader of tasks, by name or path, whole or a paper's sample of one: ``hotpotqa:tree-of-reviews``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import QuestreeError, did_you_mean, unknown_name
from ..common.registry import Registry
from .question_files import FORM, read_questions
from .task import SPLITS, Question, Task
from .task_files import DATA_VARIABLE, TaskPlace, data_folder, read_task_manifest
from .tasks import KNOWN_TASKS

if TYPE_CHECKING:
    from .tasks import Sample

_MINI = Path(__file__).parent / "mini"
MINI_CORPUS = _MINI / "corpus.jsonl"
"""The passages of the bundled sets."""
BUNDLED = {"mini": _MINI / "questions.jsonl", "mini-lists": _MINI / "mini-lists.jsonl"}
"""The bundled tasks by name, with their files."""


def _read_task(name: str, found: Any) -> Task:
    task = found if isinstance(found, Task) else found() if callable(found) else None
    if not isinstance(task, Task):
        raise TypeError("it is no task: give a questree.data.Task, or a function that takes nothing and returns one")
    return task.model_copy(update={"name": name})


REGISTRY: Registry[Task] = Registry("task", {}, _read_task)
"""Tasks of other packages."""


def load_task(
    name_or_path: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    corpus: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Task:
    """Load a task with its questions.

    Args:
        name_or_path: ``mini`` and ``mini-lists`` (bundled); the name of a JSONL file in the data folder, without its
            ending, which `fetch_task` may have put there; or the path of any JSONL file of that shape. ``name:sample``
            is a paper's sample of a task: ``hotpotqa:tree-of-reviews``. ``name:origin`` keeps the questions of one data
            set of a file that holds several: ``recorded:musique``. ``package:name``, or the name of an entry point, is
            a task of another package.
        split: load only this one of train, dev and test.
        limit: how many questions of each split to keep. The first 10 of a seed are the first 10 of its first 20.
        seed: orders the questions of each split; it never moves a question to another split.
        corpus: the file of passages, if the one that lies beside the task is not meant.
        data_dir: the data folder; by default what the environment variable ``QUESTREE_DATA`` names, else the one
            in the cache folder.

    Raises:
        QuestreeError: if there is no such task, split, sample, origin or corpus, or the file is faulty, or its fetch
            was interrupted.
    """
    if split is not None and split not in SPLITS:
        raise QuestreeError(unknown_name("split", split, SPLITS))
    if limit is not None and limit < 1:
        raise QuestreeError(f"A limit of {limit} leaves no questions: give 1 or more.")
    folder = data_folder(data_dir)
    named = str(name_or_path)
    place, part = _narrowed(named)
    if found := _find(named, place, folder):  # a file goes before other packages' tasks, and so does a published task
        task = _of_file(found, None if found == Path(named) else part, folder, corpus)
    elif place not in KNOWN_TASKS and REGISTRY.stands_for(named):
        task = REGISTRY.named(named)
    else:
        raise QuestreeError(_not_found(named, place, folder))
    if split is not None:
        task.split(split)  # says which splits there are
    kept = [s for s in SPLITS if split in {None, s}]
    return task.model_copy(update={"questions": {s: _drawn(task.questions.get(s, ()), seed, limit) for s in kept}})


def _of_file(path: Path, part: str | None, folder: Path, corpus: str | Path | None) -> Task:
    """Return the task of a file with all of its questions, or with those of a sample or an origin."""
    name = next((ours for ours, file in BUNDLED.items() if file == path), path.stem)
    if path.parent == folder:
        read_task_manifest(folder, name)
    questions, known = _part(read_questions(path), name, part, path), KNOWN_TASKS.get(name)
    styles = {question.style for question in questions}
    kind: dict[str, Any] = {"style": styles.pop() if len(styles) == 1 else "mixed", "metric": "by-style"}
    if known is not None:
        kind = {field: getattr(known, field) for field in ("style", "metric", "licence", "citation", "source")}
    return Task(
        name=name if part is None else f"{name}:{part}",
        questions={s: tuple(q for q in questions if q.split == s) for s in SPLITS},
        corpus=_corpus(corpus, path, questions),
        **kind,
    )


def task_names(data_dir: str | Path | None = None) -> list[str]:
    """Return the names that `load_task` takes: the bundled set, the files of the data folder, and packages' tasks."""
    return [*BUNDLED, *sorted(file.stem for file in data_folder(data_dir).glob("*.jsonl")), *REGISTRY.names()]


def _narrowed(wanted: str) -> tuple[str, str | None]:
    """Return the name before a colon, and the sample or origin behind it."""
    place, _, part = wanted.rpartition(":")
    return (place, part or None) if place else (wanted, None)


def _find(wanted: str, place: str, folder: Path) -> Path | None:
    """Return the file of a task, if there is one. The name of a task of ours is no path: ``./mini`` is."""
    ours = BUNDLED.get(place) or TaskPlace(folder, place).questions
    paths = [Path(path) for path in (wanted, place) if path not in KNOWN_TASKS]
    return next((file for file in (*paths, ours) if file.is_file()), None)


def _not_found(wanted: str, place: str, folder: Path) -> str:
    if (known := KNOWN_TASKS.get(place)) and known.read:
        return (
            f"The questions of {place!r} do not come with questree. Get them: questree fetch {place}. Or put a "
            f"{place}.jsonl of your own into {folder} ({DATA_VARIABLE} names another folder)."
        )
    if place.endswith(".jsonl") or "/" in place:
        return f"There is no file {place}, with a JSON object a line: {FORM}"
    names = task_names(folder) if folder.is_dir() else [*BUNDLED]
    hint = did_you_mean(place, [*names, *KNOWN_TASKS])
    return (
        f"There is no task {wanted!r}.{hint} Known here: {', '.join(names)}. `questree list tasks` lists those "
        f"that can be fetched. Or put {Path(place).stem}.jsonl into {folder} ({DATA_VARIABLE} names another folder), "
        "or give the path of a JSONL file."
    )


def _part(questions: list[Question], name: str, part: str | None, path: Path) -> list[Question]:
    """Return the questions of a paper's sample, or of one origin."""
    if part is None:
        return questions
    samples = KNOWN_TASKS[name].samples if name in KNOWN_TASKS else {}
    if part in samples:
        return _sampled(questions, f"{name}:{part}", samples[part], path)
    if kept := [question for question in questions if question.task == part]:
        return kept
    origins = ", ".join(sorted({question.task for question in questions}))
    has = f"its samples are: {', '.join(samples)}" if samples else "it has no samples"
    raise QuestreeError(f"{path} has no questions of {part!r}; it has those of: {origins}; {has}.")


def _sampled(questions: Sequence[Question], name: str, sample: Sample, path: Path) -> list[Question]:
    """Return the questions of a sample, all of them in the split ``dev``, which commands score on.

    The drawn ones are the same for every seed and in whatever order the file is.
    """
    found = [question for question in questions if question.split in sample.splits]
    if not found or any(question.position is None for question in found):
        raise QuestreeError(
            f"{name} is a sample of the published {' and '.join(sample.splits)} questions, which {path} does not hold "
            f"as they were published. Get them: questree fetch {name.partition(':')[0]}"
        )
    first, drawn = sample.first, sample.drawn
    chosen = [question for question in found if first is None or (question.position or 0) <= first]
    if len(chosen) < (needed := drawn or first or 0):
        raise QuestreeError(
            f"{name} needs {needed:,} questions; {path}, which is not the whole task, has {len(chosen):,}."
        )
    if drawn is not None:
        chosen = list(_drawn(chosen, name, drawn))
    return [question.model_copy(update={"split": "dev"}) for question in chosen]


def _drawn(questions: Iterable[Question], seed: int | str, count: int | None) -> tuple[Question, ...]:
    """Return so many questions, or all, in an order that follows from the seed and their ids alone."""
    return tuple(sorted(questions, key=lambda one: hashlib.sha256(f"{seed}:{one.id}".encode()).digest())[:count])


def _corpus(given: str | Path | None, path: Path, questions: list[Question]) -> Path | None:
    """Return the corpus as given, else the bundled one, else the one that is named after the questions' data set."""
    if given is not None:
        if not Path(given).is_file():
            raise QuestreeError(f"The corpus {given} does not exist.")
        return Path(given)
    if path.parent == _MINI:
        return MINI_CORPUS
    origins = {question.task for question in questions}
    beside = TaskPlace(path.parent, origins.pop()).corpus
    return beside if not origins and beside.is_file() else None
