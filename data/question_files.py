"""Files of questions: one JSON object a line, each checked, each error named by its line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..common.errors import QuestreeError, did_you_mean
from ..common.json_files import read_text
from .task import Question, Split, split_by_hash, style_of_type
from .tasks import KNOWN_TASKS

logger = logging.getLogger(__name__)


def read_questions(path: Path) -> list[Question]:
    """Return the questions of a JSONL file, in its order.

    A line needs ``id``, ``question`` and ``answers``; ``task`` is the file's name if it is absent; ``style`` follows
    from the task or the ``type``. If no line has a ``split``, `split_of` gives each question its own.

    Raises:
        QuestreeError: if the file cannot be read, is empty, names an id twice, gives a split to some
            questions only, or has a line that is not a question; the message names file, line and fault.
    """
    questions: dict[str, Question] = {}
    lines: dict[str, int] = {}
    with_split = 0
    for number, row in _rows(path):
        with_split += row.get("split") is not None
        if not questions:
            _warn_of_mistyped(row, path)
        question = _question(row, path, number)
        if question.id in questions:
            raise QuestreeError(
                f"{path}, line {number}: id {question.id!r} is already that of line {lines[question.id]}. "
                "Give every question its own id."
            )
        questions[question.id], lines[question.id] = question, number
    if not questions:
        raise QuestreeError(f"{path} holds no questions. It needs one JSON object a line.")
    if with_split not in {0, len(questions)}:
        raise QuestreeError(
            f"{path}: {with_split} of {len(questions)} questions have a split. Give one to all or to none."
        )
    return list(questions.values())


def split_of(task: str, question: str) -> Split:
    """Return the split of a question whose file gives none: by its words, or the only one that its task has."""
    known = KNOWN_TASKS.get(task)
    return known.only_split if known and known.only_split else split_by_hash(question)


FORM = '{"question": "…", "answers": ["…"]}; it may have "id", "split" and more.'
"""What a file of questions looks like, for messages."""


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = read_text(path).split("\n")
    except (OSError, ValueError) as error:
        raise QuestreeError(
            f"Cannot read questions from {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise QuestreeError(f"{path}, line {number}: not JSON ({error}). A line is {FORM}") from error
        if not isinstance(row, dict):
            raise QuestreeError(f"{path}, line {number}: a {type(row).__name__}, where a JSON object is needed.")
        yield number, row


def _warn_of_mistyped(row: dict[str, Any], path: Path) -> None:
    """Warn of the first row's fields that are not read, but have nearly the name of one that is and that is not there.

    Other fields are what data sets have besides, and are nobody's mistake.
    """
    read = [field.alias or name for name, field in Question.model_fields.items()]
    for name in sorted(row.keys() - {*read}):
        if meant := did_you_mean(name, [one for one in read if one not in row]):
            logger.warning("%s: the field %r is not read.%s", path, name, meant)


def _question(row: dict[str, Any], path: Path, number: int) -> Question:
    task = str(row.get("task") or path.stem)
    known = KNOWN_TASKS.get(task)
    of_task = known.style if known and known.style != "mixed" else style_of_type(row.get("type"))
    asked = row.get("question")
    if known and isinstance(asked, str):
        asked = known.readable(asked)
    defaults = {"task": task, "style": of_task, "split": split_of(task, str(asked))}
    given = {**row, "question": asked}
    try:
        return Question.model_validate({**defaults, **{k: v for k, v in given.items() if v is not None}})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'question'}: "
            f"{'a list is needed' if fault['type'] == 'tuple_type' else fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise QuestreeError(f"{path}, line {number}: {faults}.") from error
