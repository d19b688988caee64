"""Questions from users' feedback: after a yes with the answer and its passages, after a no with what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..data.task import plain_words, split_by_hash
from .records import Record


class UserFeedback(NamedTuple):
    """A person's feedback on an answer.

    Attributes:
        helpful: whether it is right; None if that was not said.
        note: in the person's own words.
        right: the right answer; empty if it was not said.
    """

    helpful: bool | None = None
    note: str = ""
    right: str = ""


def said_of(record: Record) -> UserFeedback:
    """Return the feedback that was given on a record's page."""
    return UserFeedback(record.extras.get("helpful"), record.extras.get("note") or "")


def feedback_rows(records: Sequence[Record], assessed: Mapping[str, UserFeedback]) -> list[dict[str, Any]]:
    """Return a line of a task for each question whose answer was judged; of one asked several times, the last.

    After a no without the right answer it is ``dropped``: it is left out of the task until a review gives the answer.

    Args:
        records: in the order in which they were asked.
        assessed: feedback from MLflow, by the place of the trace (`Record.trace`).
    """
    rows = dict[str, dict[str, Any]]()
    for record in records:
        on_page, in_mlflow = said_of(record), assessed.get(record.trace, UserFeedback())
        helpful = on_page.helpful if in_mlflow.helpful is None else in_mlflow.helpful
        said = UserFeedback(helpful, in_mlflow.note or on_page.note, in_mlflow.right)
        if (said.helpful or said.note or said.right) and record.failure is None:
            rows[plain_words(record.question)] = _row(record, said)
    return list(rows.values())


def _row(record: Record, said: UserFeedback) -> dict[str, Any]:
    question = record.question
    row: dict[str, Any] = {"id": record.id, "split": split_by_hash(question), "question": question}
    row["style"] = record.answer_style
    if said.helpful and not said.right:
        return row | {"answers": list(record.answers)} | _proof(record)
    told = {"feedback": f"of the answer {record.answer!r}: {said.note}"} if said.note else {}
    row |= {"answers": [said.right] if said.right else []} | told
    return row if said.right else row | {"dropped": "no right answer is known yet"}


def _proof(record: Record) -> dict[str, Any]:
    """Return the proof of a right answer: its passages, and the steps that passages support."""
    cited, tree = record.references, record.tree
    nodes = [(one, one.passage) for one in tree.nodes_behind_answer() if one.support and one.passage] if tree else []
    named = [(node, {"support_title": passage.title} if passage.title else {}) for node, passage in nodes]
    return {
        "gold_passages": [passage.id for passage in cited],
        "gold_titles": [passage.title for passage in cited if passage.title],
        "steps": [{"question": node.query, "answer": node.answer or None, **title} for node, title in named],
        "quotes": [node.support for node, _ in nodes],
        "quoted_from": [passage.text for _, passage in nodes],
    }
