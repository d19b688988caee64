"""Questions of one's own corpus: chains of its passages become a file of questions, and a file of what was dropped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, get_args

import dspy
import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..data.task import Split
from ..metrics import f1
from ..programs.question_writing import Chain, QuestionWriting
from ..retrieval import LinkedRetriever
from ..retrieval.linked.chains import draw_chain
from ..signatures.questions import QuestionKind
from .identity import digest
from .run import evaluate
from .stored_runs import read_records

COPY = "it repeats another question"
_SAME = 0.85  # F1 of the words of two questions
_MOST = 10  # chains for each question that is wanted
_SHARES: dict[Split, float] = {"train": 0.4, "dev": 0.3, "test": 0.3}


class QuestionShares(BaseModel):
    """Which questions are written; the rest are short answers at the end of two to four passages."""

    model_config = ConfigDict(frozen=True)

    single: float = Field(default=0.1, ge=0, le=1, description="Share of the questions on one passage.")
    list: float = Field(default=0.1, ge=0, le=1, description="Share of those whose answer is a list.")
    comparison: float = Field(default=0.15, ge=0, le=1, description="Share of those that compare two passages.")
    absent: float = Field(default=0.1, ge=0, le=1, description="Share of those that the corpus does not answer.")

    def draw(self, drawn: Random) -> tuple[QuestionKind, int]:
        """Return a kind of question, and of how many passages."""
        place = drawn.random()
        for name in get_args(QuestionKind)[1:]:
            place -= getattr(self, name)
            if place < 0:
                return name, 2 if name == "comparison" else drawn.choice((2, 2, 3))
        return "bridge", 1 if place < self.single else drawn.choice((2, 2, 2, 3, 3, 4))


def chains_of(retriever: LinkedRetriever, shares: QuestionShares, seed: int) -> Iterator[Chain]:
    """Yield chains of different passages, in an order that follows from the seed; no passage is in two splits."""
    drawn, links = Random(seed), retriever.links
    owner, counts, seen = dict[int, Split](), Counter[Split](), set[tuple[int, ...]]()
    order = np.random.default_rng(seed).permutation(len(retriever.words.passages)).tolist()
    for start in [*order, *order, *order]:
        kind, length = shares.draw(drawn)
        places = draw_chain(links, start, length, drawn, siblings=kind == "comparison")
        owners = {owner[place] for place in places if place in owner}
        if (name := tuple(sorted(places))) in seen or len(owners) > 1 or len(places) < min(length, 2):
            continue
        seen.add(name)
        split = owners.pop() if owners else min(_SHARES, key=lambda one: (counts[one] + 1) / _SHARES[one])
        owner |= dict.fromkeys(places, split)
        counts[split] += 1
        yield Chain(tuple(retriever.words.passages[place] for place in places), kind, split)


@dataclass(frozen=True)
class OwnQuestions:
    """What was written: the lines of the file of questions, and of those that were dropped, each with its reason."""

    kept: tuple[dict[str, Any], ...]
    dropped: tuple[dict[str, Any], ...]
    failed: int

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many questions were dropped for each reason, the most frequent first."""
        return dict(Counter(row["dropped"] for row in self.dropped).most_common())

    def save(self, out: Path) -> Path:
        """Write the file of questions, and beside it that of the dropped ones, which is returned."""
        beside = out.with_suffix(".dropped.jsonl")
        for path, rows in ((out, self.kept), (beside, self.dropped)):
            write_atomically(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
        return beside


def write_questions(
    writing: QuestionWriting,
    chains: Iterator[Chain],
    count: int,
    *,
    out: Path,
    save: Callable[[OwnQuestions], None],
    **how: Any,
) -> OwnQuestions:
    """Return so many questions that pass all checks; fewer if the chains run out, or most questions are dropped.

    Args:
        writing: the program that writes and checks them.
        chains: to write them from, in this order.
        count: how many to keep.
        out: folder of the run, which goes on there.
        save: is given what there is when this ends, also where a budget or the user stops it.
        how: further arguments of `evaluate`.
    """
    own = OwnQuestions((), (), 0)
    while lacking := min(count - len(own.kept), _MOST * count - len(writing.chains)):
        more = list(islice(chains, lacking))
        if not more:
            break
        writing.chains |= {one.title: one for one in more}
        try:
            evaluate(writing, list(map(_example, writing.chains)), kept, out=out, **how)
        finally:
            with suppress(QuestreeError):  # nothing was finished yet
                own = _collected(out, writing.chains, count)
                save(own)
    return own


def kept(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
    """Return whether a written question passed its checks."""
    return float(not prediction.get("fault", "it failed"))


def _example(title: str) -> dspy.Example:
    return dspy.Example(id=digest(title), question=title, answers=[]).with_inputs("question")


def _collected(folder: Path, chains: dict[str, Chain], count: int) -> OwnQuestions:
    """Return what the records of a run hold, in the order of the chains."""
    records = {record.question: record for record in read_records(folder)}
    found, dropped, failed = list[dict[str, Any]](), list[dict[str, Any]](), 0
    for title, chain in chains.items():
        if (record := records.get(title)) is None or record.failure:
            failed += record is not None
            continue
        row = {"id": record.id, "split": chain.split, **record.extras["written"]}
        asked = [one["question"] for one in found]
        fault = record.extras["fault"] or (COPY if asked and f1(row["question"], asked) > _SAME else "")
        if fault:
            dropped.append({**row, "dropped": fault})
        elif len(found) < count:
            found.append(row)
    return OwnQuestions(tuple(found), tuple(dropped), failed)
