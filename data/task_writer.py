"""The writer of a task's questions and passages, row by row: it holds nothing but what keeps them distinct."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .task import Question, Split, plain_words
from .tasks.base import BadRow, words_id

_RESERVED = ("id", "task", "question", "answers", "split", "position")


@contextmanager
def task_writer(folder: Path, train_limit: int | None) -> Iterator[TaskWriter]:
    """Give the writer of ``questions.jsonl`` and ``corpus.jsonl`` in a folder that exists.

    The rows of the splits that score must come first: a question of one of them is left out of the splits that
    follow, so that no question that trains is ever scored.

    Args:
        train_limit: how many training questions are kept at most, the same ones whatever the order of the rows.
    """
    with (
        (folder / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as questions,
        (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as corpus,
    ):
        writer = TaskWriter(questions, corpus, train_limit)
        yield writer
        writer.write_train()


class TaskWriter:
    """The writer of a task's questions and passages. Made by `task_writer`."""

    def __init__(self, questions: IO[str], corpus: IO[str], train_limit: int | None) -> None:
        self.counts: Counter[Split] = Counter()
        self.left_out: Counter[str] = Counter()
        self.passages = 0
        self._limit = train_limit
        self._train: list[tuple[int, str]] = []
        self._ids: set[bytes] = set()
        self._words: dict[bytes, Split] = {}
        self._seen_passages: set[bytes] = set()
        self._questions, self._corpus = questions, corpus

    def write_train(self) -> None:
        """Write the training questions that were kept back."""
        for _, line in sorted(self._train, reverse=True):
            self._write("train", line)

    def add(self, question: Question, fields: dict[str, Any], place: str) -> None:
        """Take a question, with its fields as they are to be written."""
        words = _digest(plain_words(question.question))
        if (known := self._words.setdefault(words, question.split)) != question.split:
            self.left_out[f"{question.split} question that {known} has too"] += 1
            return
        if (name := _digest(question.id)) in self._ids:
            if question.id == words_id(question.task, question.question):
                self.left_out["question that stands twice"] += 1
                return
            raise BadRow(f"{place}: the id {question.id!r} was that of another question.")
        self._ids.add(name)
        line = json.dumps(_as_written(question, fields), ensure_ascii=False)
        if question.split != "train" or self._limit is None:
            self._write(question.split, line)
            return
        entry = (-int.from_bytes(_digest(f"train:{question.id}"), "big"), line)
        if len(self._train) < self._limit:
            heapq.heappush(self._train, entry)
        else:
            heapq.heappushpop(self._train, entry)
            self.left_out[f"train question beyond the {self._limit:,} that are kept"] += 1

    def _write(self, split: Split, line: str) -> None:
        self._questions.write(line + "\n")
        self.counts[split] += 1
        self.add_passages(json.loads(line).get("paragraphs", []))

    def add_passages(self, paragraphs: Iterable[dict[str, Any]]) -> None:
        """Write those passages that are not there yet."""
        for paragraph in paragraphs:
            title, text = paragraph.get("title") or "", paragraph["text"]
            name = _digest(f"{title}\n{text}")
            if name not in self._seen_passages:
                self._seen_passages.add(name)
                self._corpus.write(
                    json.dumps({"id": name.hex(), "title": title, "text": text}, ensure_ascii=False) + "\n"
                )
                self.passages += 1


def _as_written(question: Question, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not empty, the checked ones first; answers are kept where there are none."""
    checked = {name: getattr(question, name) for name in _RESERVED}
    checked["answers"] = [item if len(item) > 1 else item[0] for item in question.needed] or question.answers
    others = {name: value for name, value in fields.items() if name not in _RESERVED}
    return {n: value for n, value in {**checked, **others}.items() if n == "answers" or value not in (None, [], ())}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:12]
