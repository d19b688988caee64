"""The papers' samples by name: ``hotpotqa:tree-of-reviews``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..common.errors import QuestreeError
from .task import Question
from .tasks import Sample


def sampled(questions: Sequence[Question], name: str, sample: Sample, path: Path) -> list[Question]:
    """The questions of a sample, all of them in the split ``dev``, which commands score on.

    Those that are drawn are the same for every seed and in whatever order the file is.

    Raises:
        QuestreeError: if the file is not what was published, or has too few questions for the sample.
    """
    found = [question for question in questions if question.split in sample.splits]
    if not found or any(question.position is None for question in found):
        raise QuestreeError(
            f"{name} is a sample of the published {' and '.join(sample.splits)} questions, which {path} does not hold "
            f"as they were published. Get them: questree fetch {name.partition(':')[0]}"
        )
    chosen = _first(found, sample.first, name, path) if sample.first else found
    if sample.drawn:
        _enough(len(chosen), sample.drawn, name, path)
        chosen = sorted(chosen, key=lambda question: _place(name, question))[: sample.drawn]
    return [question.model_copy(update={"split": "dev"}) for question in chosen]


def _first(questions: Iterable[Question], count: int, name: str, path: Path) -> list[Question]:
    kept = [question for question in questions if question.position is not None and question.position <= count]
    _enough(len(kept), count, name, path)
    return kept


def _enough(there: int, needed: int, name: str, path: Path) -> None:
    if there < needed:
        raise QuestreeError(f"{name} needs {needed:,} questions; {path}, which is not the whole task, has {there:,}.")


def _place(name: str, question: Question) -> bytes:
    return hashlib.sha256(f"{name}:{question.id}".encode()).digest()
