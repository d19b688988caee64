"""Files of questions: JSON lines, a JSON array, CSV or Parquet, each row checked, each error named by its line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..common.errors import QuestreeError, did_you_mean
from ..common.json_files import check_regular, read_text, written_list
from .task import Question, Split, split_by_hash, style_of_type
from .tasks import KNOWN_TASKS
from .tasks.base import words_id

logger = logging.getLogger(__name__)


def read_questions(path: Path) -> list[Question]:
    """Return the questions of a file, in its order: JSON lines, a JSON array, CSV with a header, or Parquet.

    A line needs ``question`` and ``answers`` (or ``answer``, or FlashRAG's ``golden_answers``); none, ``[]``, where the
    corpus does not tell it. Of style ``list`` all are needed, and one of several spellings is a list of them. ``id``
    follows from the words if it is absent, ``task`` is the file's name then, and ``style`` follows from the task or the
    ``type``. If no line has a ``split``, `split_of` gives each question its own. A line with ``dropped``, the
    reason, is passed over.

    Raises:
        QuestreeError: if the file cannot be read, is empty, names an id twice, gives a split to some
            questions only, or has a line that is not a question; the message names file, line and fault.
    """
    questions: dict[str, Question] = {}
    lines: dict[str, int] = {}
    with_split = 0
    for number, row in _rows(path):
        if row.get("dropped"):
            continue
        with_split += row.get("split") is not None
        if not questions:
            _warn_of_mistyped(row, path)
        question = check_row(row, path, number)
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


def raw_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of questions as they stand, those that were dropped too; each has an id and a split.

    Raises:
        QuestreeError: as `read_questions`; nothing is asked of a row that was dropped.
    """
    rows = list[dict[str, Any]]()
    for number, row in _rows(path):
        if not row.get("dropped"):
            check_row(row, path, number)
        task, asked = str(row.get("task") or path.stem), str(row.get("question", ""))
        rows.append({"id": words_id(task, asked), "split": split_of(task, asked), **row})
    return rows


def split_of(task: str, question: str) -> Split:
    """Return the split of a question whose file gives none: by its words, or the only one that its task has."""
    known = KNOWN_TASKS.get(task)
    return known.only_split if known and known.only_split else split_by_hash(question)


FORM = '{"question": "…", "answers": ["…"]}; it may have "id", "split" and more.'
"""What a file of questions looks like, for messages."""
_OTHER_NAMES = {"answers": ("golden_answers", "answer"), "id": ("_id", "qid", "question_id", "query_id")}
_PUBLISHED = (  # the fields by which rows of the authors' own files are known, and of the hub's; the particular first
    ("2wikimultihopqa", {"supporting_facts", "evidences"}),
    ("hotpotqa", {"supporting_facts", "context"}),
    ("musique", {"question_decomposition", "paragraphs"}),
    ("strategyqa", {"qid", "decomposition"}),
    ("squad", {"version", "data"}),
    ("squad", {"title", "context", "answers"}),
    ("triviaqa", {"Data"}),
    ("phantomwiki", {"prolog", "template"}),
)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, row in _values(path):
        if not isinstance(row, dict):
            raise QuestreeError(f"{path}, line {number}: a {type(row).__name__}, where a JSON object is needed.")
        for name, fields in _PUBLISHED:
            if fields <= row.keys() and not isinstance(row.get("answers"), list):
                files = "" if path.suffix == ".parquet" else f" --from {path}"  # the hub has those
                raise QuestreeError(
                    f"{path} is a file as {name} is published. Make a task of it, with its corpus: "
                    f"questree fetch {name}{files}. Then ask it: --task {name}."
                )
        yield number, _named(row)


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row of a file, whatever it is, with its number."""
    try:
        check_regular(path.stat())
        with path.open("rb") as file:
            first = file.read(1_000).decode("utf-8-sig", "replace")
        if not first.lstrip().startswith("{"):  # what reads other files is loaded for those alone
            from ..common.row_files import kind_of, rows_of

            if kind := kind_of(path, first):
                yield from enumerate(map(_with_lists, rows_of(path, kind)) if kind == "csv" else rows_of(path, kind), 1)
                return
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise QuestreeError(
            f"Cannot read questions from {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            with suppress(ValueError, RecursionError):
                yield number, json.loads(text)  # one object over many lines
                return
            raise QuestreeError(f"{path}, line {number}: not JSON ({error}). A line is {FORM}") from error


def _with_lists(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of CSV, in which lists are written as JSON or Python write them; one answer may stand alone."""
    for name, text in row.items():
        if name != "question" and text.startswith("["):
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                row[name] = written_list(text)
    return row if isinstance(row.get("answers", []), list) else {**row, "answers": [row["answers"]]}


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the fields' own names; answers are made texts, and what is true or false is a yes-no answer."""
    known = {**row}
    for name, others in _OTHER_NAMES.items():
        for other in others:
            if known.get(name) is None and other in known:
                given = known.pop(other)
                known[name] = given if isinstance(given, list) or name == "id" else [given]
    answers = known["answers"] if isinstance(known.get("answers"), list) else []
    if answers and all(isinstance(one, bool) for one in answers) and style_of_type(row.get("type")) == "short":
        known = {"style": "yes-no", **known}
    if answers:
        known["answers"] = list(map(_written, answers))
    return {**known, "id": _written(known["id"])} if "id" in known else known


def _written(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _warn_of_mistyped(row: dict[str, Any], path: Path) -> None:
    """Warn of the first row's fields that are not read, but have nearly the name of one that is and that is not there.

    Other fields are what data sets have besides, and are nobody's mistake.
    """
    read = [field.alias or name for name, field in Question.model_fields.items()]
    for name in sorted(row.keys() - {*read}):
        if meant := did_you_mean(name, [one for one in read if one not in row]):
            logger.warning("%s: the field %r is not read.%s", path, name, meant)


def check_row(row: dict[str, Any], path: Path, number: int) -> Question:
    """Return the question of a row.

    Raises:
        QuestreeError: it is none; the message names file, line and fault.
    """
    task = str(row.get("task") or path.stem)
    known = KNOWN_TASKS.get(task)
    of_task = known.style if known and known.style != "mixed" else style_of_type(row.get("type"))
    asked = row.get("question")
    if known and isinstance(asked, str):
        asked = known.readable(asked)
    defaults = {"id": words_id(task, str(asked)), "task": task, "style": of_task, "split": split_of(task, str(asked))}
    given = {**row, "question": asked, "needed": None}  # it follows from the answers
    try:
        return Question.model_validate({**defaults, **{k: v for k, v in given.items() if v is not None}})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'question'}: "
            f"{'a list is needed' if fault['type'] == 'tuple_type' else fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise QuestreeError(f"{path}, line {number}: {faults}.") from error
