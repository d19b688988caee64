"""The review of a file of questions: a person keeps, mends or drops each one, which is written at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from .question_files import check_row, raw_rows

_SPELLINGS = " | "


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a file of questions, a line for each."""
    write_atomically(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def with_reviewed(rows: Sequence[dict[str, Any]], *files: Path) -> list[dict[str, Any]]:
    """Return rows with what a person decided on them in these files, then the other rows that were reviewed there."""
    reviewed = dict[str, dict[str, Any]]()
    for path in files:
        with suppress(QuestreeError):  # it is not there yet, or no file of questions
            reviewed |= {row["id"]: row for row in raw_rows(path) if "review" in row}
    return [reviewed.pop(row["id"], row) for row in rows] + list(reviewed.values())


def is_open(row: dict[str, Any]) -> bool:
    """Return whether nobody has decided on a question yet."""
    return "review" not in row


def answer_lines(row: dict[str, Any]) -> list[str]:
    """Return the answers of a row, each on a line; the spellings of one follow it behind a ``|``."""
    return [_SPELLINGS.join(map(str, one)) if isinstance(one, list) else str(one) for one in row["answers"]]


def decide(path: Path, id: str, decision: str, *, question: str, answers: Sequence[str], note: str = "") -> None:
    """Write what a person decides on a question. A dropped one stays in the file, and is no question of the task.

    Args:
        path: the file of questions.
        decision: ``keep`` or ``drop``. What is kept with other words than it had is a ``mend``.
        question, answers: its words, and the lines of its answers.
        note: the person's own words.

    Raises:
        QuestreeError: there is no such question in the file any more, or it would be none with these words.
    """
    rows = raw_rows(path)
    number = next((number for number, row in enumerate(rows) if row["id"] == id), None)
    if number is None:
        raise QuestreeError(f"{path} has no question {id!r} any more; load the page again.")
    row = _mended(rows[number], " ".join(question.split()), [one.strip() for one in answers if one.strip()])
    kept = "mend" if row is not rows[number] or row.get("review") == "mend" else "keep"
    dropped = {"dropped": "in review"} if decision == "drop" else {}
    row = {name: value for name, value in row.items() if name not in ("dropped", "note")}
    rows[number] = row | {"review": "drop" if dropped else kept} | dropped | ({"note": note} if note else {})
    check_row(rows[number], path, number + 1)
    write_rows(path, rows)


def _mended(row: dict[str, Any], question: str, lines: list[str]) -> dict[str, Any]:
    """Return a row with other words, the answer of the last step as well; the same row if they are the same."""
    before = answer_lines(row)
    if question == " ".join(row["question"].split()) and lines == before:
        return row
    answers = [one.split(_SPELLINGS) if _SPELLINGS in one and row.get("style") == "list" else one for one in lines]
    steps = [dict(step) for step in row.get("steps") or []]
    if lines != before and steps and before[:1] == [steps[-1].get("answer")]:
        steps[-1]["answer"] = lines[0] if lines else None
    return row | {"question": question, "answers": answers if lines != before else row["answers"], "steps": steps}
