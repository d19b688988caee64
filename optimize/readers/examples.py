"""Questions with the passage that answers them: what a reader is calibrated and scored on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ...common.json_files import read_text
from ...data import KNOWN_TASKS, Question, load_task, split_of
from ...data.tasks import Row
from ...metrics import contains, pattern_in
from ...retrieval import Passage, Retriever


@dataclass(frozen=True)
class ReadingExample:
    """A question, a passage that answers it, and passages that do not.

    Attributes:
        negatives: look as if they did; hold none of the answers.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    passage: Passage
    negatives: tuple[Passage, ...] = ()
    answers_are_regex: bool = False

    def may_be_answered_by(self, passage: Passage) -> bool:
        """Return whether it is the passage of the question, or holds one of the answers."""
        shown = passage.shown()
        if self.answers_are_regex:
            return passage.text == self.passage.text or pattern_in(shown, self.answers)
        return passage.text == self.passage.text or any(contains(shown, answer) for answer in self.answers)


def reading_examples(source: str | Path, splits: str = "train", *, seed: int = 0) -> list[ReadingExample]:
    """Return the questions of some splits that come with a passage.

    Args:
        source: a task by name; a JSONL file of questions with ``paragraphs``; or a ``.json`` file as SQuAD 1.1
            (``data``, ``paragraphs``, ``qas``) or DPR (``positive_ctxs``, ``hard_negative_ctxs``; its form of
            Natural Questions) publishes it. Several are separated by commas.
        splits: train, dev, test, or several: ``train,dev``. A file without splits is split by the questions' words.
        seed: orders the questions.
    """
    named = [split.strip() for split in splits.split(",")]
    return [example for one in str(source).split(",") for example in _examples_from(one.strip(), named, seed)]


def _examples_from(source: str, splits: list[str], seed: int) -> list[ReadingExample]:
    if source.endswith(".json") and Path(source).is_file():
        questions = [question for question in _published(Path(source)) if question.split in splits]
    else:
        task = load_task(source, seed=seed)
        present = [split for split, some in task.questions.items() if some and split in splits] or splits[:1]
        questions = [question for split in present for question in task.split(split)]
    if not (examples := examples_of(questions)):
        raise QuestreeError(
            f"{source} has no question in {', '.join(splits)} that comes with its supporting passage; use nq or squad, "
            "for example."
        )
    return examples


def examples_of(questions: Sequence[Question]) -> list[ReadingExample]:
    """Return the questions of a task that come with an answer and a supporting passage."""
    found = []
    for one in questions:
        passages = [
            (paragraph.is_supporting, Passage(id=f"{one.id}/{place}", title=paragraph.title, text=paragraph.text))
            for place, paragraph in enumerate(one.paragraphs)
        ]
        supporting = [passage for supports, passage in passages if supports]
        if supporting and one.answers:
            holds = [passage for passage in supporting if any(contains(passage.text, each) for each in one.answers)]
            own, regex = (holds or supporting)[0], one.answers_are_regex
            example = ReadingExample(one.id, one.question, one.answers, own, answers_are_regex=regex)
            others = [passage for supports, passage in passages if not supports]
            wrong = tuple(passage for passage in others if not example.may_be_answered_by(passage))
            found.append(replace(example, negatives=wrong))
    return found


def _published(file: Path) -> list[Question]:
    """Return the questions of a file as SQuAD or DPR publishes it, with DPR's negatives among their paragraphs."""
    try:
        document = json.loads(read_text(file))
        task = KNOWN_TASKS["squad" if isinstance(document, dict) else "nq"]
        rows = list(task.unpack(document) or () if isinstance(document, dict) else document)
        if not rows:
            raise ValueError("it holds no question")
        return [
            _question(task.read, Row(f"{file}, entry {number}", row), file.stem)
            for number, row in enumerate(rows, start=1)
            if row["answers"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise QuestreeError(
            f"{file} is neither in SQuAD 1.1's form nor in DPR's ({type(problem).__name__}: {problem})."
        ) from problem


def _question(read: Any, row: Row, name: str) -> Question:
    fields = read(row)
    wrong = [one for kind in ("hard_negative_ctxs", "negative_ctxs") for one in row.data.get(kind) or []]
    negatives = [{"title": one.get("title") or "", "text": one["text"]} for one in wrong]
    more = {"task": name, "style": "short", "split": split_of(name, fields["question"])}
    return Question(**fields | more | {"paragraphs": [*fields["paragraphs"], *negatives]})


def spread_out(examples: Sequence[ReadingExample], limit: int) -> list[ReadingExample]:
    """Return so many of the examples, evenly spread over them, so that several tasks each give their share."""
    count = min(limit, len(examples))
    return [examples[place * len(examples) // count] for place in range(count)]


_TOGETHER = 32
_TRIES = 100


def mine_negatives(
    examples: Sequence[ReadingExample],
    retriever: Retriever,
    *,
    keep: int = 10,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[ReadingExample]:
    """Return the examples, each with the passages that the retriever ranks highest and that hold none of its answers.

    Args:
        retriever: over passages of the same kind as the examples' own; with passages of another source, a reader
            would learn to tell the sources apart.
        keep: mined negatives, at most; three times as many passages are looked at.
        on_progress: called with the number of questions that are done.
    """
    done: list[ReadingExample] = []
    for first in range(0, len(examples), _TOGETHER):
        some = examples[first : first + _TOGETHER]
        for example, found in zip(some, retriever.batch([one.question for one in some], 3 * keep), strict=True):
            wrong = [passage for passage in found if not example.may_be_answered_by(passage)][:keep]
            done.append(replace(example, negatives=(*wrong, *example.negatives)))
        on_progress(len(done))
    return done


def draw_negatives(
    example: ReadingExample, count: int, others: Sequence[ReadingExample], rng: random.Random
) -> list[Passage]:
    """Return so many of the example's negatives, drawn at random.

    If it has too few, other examples' passages that do not answer it are added; if a hundred tries find too few of
    those, there are fewer.
    """
    chosen = rng.sample(example.negatives, min(count, len(example.negatives)))
    for _ in range(_TRIES):
        if len(chosen) == count:
            break
        other = rng.choice(others).passage
        if not example.may_be_answered_by(other) and all(other.text != one.text for one in chosen):
            chosen.append(other)
    return chosen
