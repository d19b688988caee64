"""A capsule without the texts of a data set: questions and passages by their ids, prompts by their digests.

What the LM replied is kept. Whoever has the task and its corpus puts the texts back, and replays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from pydantic import JsonValue

from ...common.errors import QuestreeError
from ...common.manifests import json_hash
from ...lm.exchanges import Exchange
from ...retrieval import Passage
from ..records import Record, example_fields
from .differences import Difference, comparable


@dataclass(frozen=True)
class Texts:
    """The questions of a task by id, and the passages of its corpus."""

    questions: Mapping[str, dspy.Example]
    corpus: Iterable[Passage]


def record_digest(record: Record) -> str:
    """Return a digest of all in a record that a replay repeats."""
    return json_hash(comparable(record))[:16]


def record_differences(stored: Record, now: Record, digest: str) -> list[Difference]:
    """Return that a record differs, if it does: where, only its texts would tell."""
    if record_digest(now) == digest:
        return []
    text = (
        f"{stored.answer} → {now.answer}" if stored.answer != now.answer else "the answer is the same, the rest is not"
    )
    return [Difference(place=(), by="record", number=0, why="answer changed", text=text)]


def without_texts(record: Record) -> Record:
    """Return what a record keeps without texts: ids, digests, scores, what was spent, and the answer."""
    kept = record.model_dump(include={"id", "inputs", "gold", "scores", "answer_style", "seconds", "spent", "answer"})
    failure = None if record.failure is None else record.failure.model_copy(update={"where": None})
    return Record(question="", failure=failure, **kept)


def exchange_without_texts(exchange: Exchange) -> Exchange:
    """Return an exchange without what was asked, and its passages by id and score."""
    came = exchange.came
    if exchange.kind == "search" and isinstance(came, list):
        came = [{"id": one["id"], "score": one.get("score", 0.0)} for one in came if isinstance(one, dict)]
    return exchange.model_copy(update={"asked": {}, "came": came})


def restored(records: Iterable[Record], texts: Texts, task: str) -> tuple[Record, ...]:
    """Return records with their questions and gold answers.

    Raises:
        QuestreeError: if the task has no such question, or another one of this id.
    """
    found = []
    for record in records:
        example = texts.questions.get(record.id)
        fields = {} if example is None else example_fields(example)
        if fields.get("inputs") != record.inputs:
            what = "has another" if fields else "lacks the"
            raise QuestreeError(
                f"The capsule holds no texts, and the task {what} question {record.id!r}; name the task that was "
                f"asked, {task!r}, with --task."
            )
        found.append(record.model_copy(update=fields))
    return tuple(found)


def passages_of(runs: Iterable[Mapping[str, list[Exchange]]], corpus: Iterable[Passage]) -> dict[str, dict[str, Any]]:
    """Return the passages that were found in these runs, by id, as JSON.

    Raises:
        QuestreeError: if the corpus lacks one.
    """
    searches = [one for run in runs for exchanges in run.values() for one in exchanges if _holds_passages(one)]
    wanted = {hit["id"] for one in searches for hit in _hits(one)}
    found = {passage.id: passage.model_dump(mode="json") for passage in corpus if passage.id in wanted}
    if missing := wanted - found.keys():
        raise QuestreeError(
            f"The corpus lacks {len(missing)} passages, {min(missing)!r} for one; name the index that was searched "
            "with --retriever."
        )
    return found


def restore_passages(
    asked: Mapping[str, list[Exchange]], passages: Mapping[str, dict[str, Any]]
) -> dict[str, list[Exchange]]:
    """Return exchanges with the passages of their searches, which `passages_of` gives."""

    def whole(one: Exchange) -> Exchange:
        if not _holds_passages(one):
            return one
        came: list[JsonValue] = [{**passages[hit["id"]], "score": hit["score"]} for hit in _hits(one)]
        return one.model_copy(update={"came": came})

    return {id: [whole(one) for one in exchanges] for id, exchanges in asked.items()}


def _holds_passages(exchange: Exchange) -> bool:
    return exchange.kind == "search" and bool(exchange.came)


def _hits(search: Exchange) -> list[dict[str, Any]]:
    """Return the ids and scores that a search found.

    Raises:
        QuestreeError: if it holds something else.
    """
    hits: Any = search.came
    if not isinstance(hits, list) or any(not isinstance(hit, dict) or hit.keys() != {"id", "score"} for hit in hits):
        raise QuestreeError("A search of the capsule holds something else than ids and scores of passages.")
    return hits
