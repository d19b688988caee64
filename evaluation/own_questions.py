"""Questions of one's own corpus: chains of its passages become a file of questions, and a file of what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

import dspy
import numpy as np
from pydantic import BaseModel, Field

from ..common.errors import QuestreeError
from ..data.review import with_reviewed, write_rows
from ..data.task import Split
from ..metrics import f1
from ..programs.written_questions import Chain, QuestionWriting
from ..retrieval import LinkedRetriever
from ..retrieval.linked.chains import draw_chain, told_in
from .identity import digest
from .records import Record
from .run import evaluate
from .stored_runs import read_records

_SAME = 0.85  # F1 of the words of two questions
_MOST = 10  # chains for each question to be written
_LENGTHS = {"bridge": (2, 2, 2, 3, 3, 4), "single": (1,), "list": (2, 2, 3), "comparison": (2,), "absent": (1, 2, 2, 3)}
_SEVERAL = ("bridge", "list", "comparison")
_SHOWN = 4  # passages, of which a question need not use all
_SHARES: dict[Split, float] = {"train": 0.4, "dev": 0.3, "test": 0.3}


class QuestionShares(BaseModel):
    """The shares of kinds of questions; the rest have a short answer at the end of a path of two passages or more."""

    single: float = Field(default=0.1, ge=0, le=1, description="Share of the questions on one passage.")
    list: float = Field(default=0.1, ge=0, le=1, description="Share of those whose answer is a list.")
    comparison: float = Field(default=0.15, ge=0, le=1, description="Share of those that compare two passages.")
    absent: float = Field(default=0.1, ge=0, le=1, description="Share of those that the corpus does not answer.")

    def draw(self, drawn: Random) -> tuple[Any, int]:
        """Return a kind of question, and of how many passages."""
        shares = self.model_dump()
        kinds = drawn.choices([*shares, "bridge"], [*shares.values(), max(0.0, 1 - sum(shares.values()))])
        return kinds[0], drawn.choice(_LENGTHS[kinds[0]])


def chains_of(retriever: LinkedRetriever, shares: QuestionShares, seed: int) -> Iterator[Chain]:
    """Yield chains of different passages, in an order that follows from the seed; no passage is in two splits.

    Each passage begins a chain up to three times. The first time, the others must be linked to it; later, passages on
    the same subject may follow where there is no link.
    """
    drawn, links, passages = Random(seed), retriever.links, retriever.words.passages
    owner, counts, seen = dict[int, Split](), Counter[Split](), set[tuple[int, ...]]()
    order = np.random.default_rng(seed).permutation(len(passages)).tolist()
    for unlinked, start in product((False, True, True), order):  # links come first
        kind, length = shares.draw(drawn)
        places = draw_chain(passages, links, start, length, drawn, siblings=kind == "comparison")
        owners = {owner[place] for place in places if place in owner}
        if not places or (name := tuple(sorted(places))) in seen or len(owners) > 1:
            continue
        split = owners.pop() if owners else min(_SHARES, key=lambda one: (counts[one] + 1) / _SHARES[one])
        near = _near(retriever, places[-1], drawn) if kind in _SEVERAL else []
        near = [one for one in near if one not in places and owner.get(one, split) == split][: _SHOWN - len(places)]
        if len(places) + len(near) * unlinked < min(length, 2):
            continue
        seen.add(name)
        owner |= dict.fromkeys([*places, *near], split)
        counts[split] += 1
        core, beside = (tuple(passages[place] for place in some) for some in (places, near))
        yield Chain(core, kind, split, beside)


def _near(retriever: LinkedRetriever, place: int, drawn: Random) -> list[int]:
    """Return what a search for a sentence of a passage finds: passages on one subject often do not name each other."""
    sentence = drawn.choice(told_in(retriever.words.passages[place]))
    found = retriever.words.batch([sentence], k=2 * _SHOWN)[0]
    return [int(one) for one in retriever.links.positions([hit.id for hit in found if told_in(hit)])]


def write_questions(
    writing: QuestionWriting, chains: Iterator[Chain], count: int, *, folder: Path, out: Path, **how: Any
) -> list[dict[str, Any]]:
    """Return the lines of questions, those that are not kept with the reason under ``dropped``.

    Reviewed questions stay as they are. Fewer than ``count`` are kept if the chains run out, or most questions are
    dropped. They are written when this ends, also where a budget or the user stops it.

    Args:
        writing: the program that writes and checks them.
        chains: to write them from, in this order.
        count: how many to keep.
        folder: of the run, which is resumed if it is there.
        out: the file of questions; `dropped_file` of it holds the others.
        how: further arguments of `evaluate`.
    """
    rows = list[dict[str, Any]]()
    while more := list(islice(chains, min(count - len(kept(rows)), _MOST * count - len(writing.chains)))):
        writing.chains |= {chain.title: chain for chain in more}
        asked = [dspy.Example(id=digest(title), question=title, answers=[]) for title in writing.chains]
        try:
            evaluate(writing, [example.with_inputs("question") for example in asked], passed, out=folder, **how)
        finally:
            with suppress(QuestreeError):  # nothing was finished yet
                rows = with_reviewed(_rows(read_records(folder), writing.chains), out, dropped_file(out))
                write_rows(out, kept(rows))
                write_rows(dropped_file(out), [row for row in rows if "dropped" in row])
    return rows


def dropped_file(out: Path) -> Path:
    """Return the file beside a file of questions that holds the dropped ones."""
    return out.with_suffix(".dropped.jsonl")


def kept(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of questions that are kept."""
    return [row for row in rows if "dropped" not in row]


def passed(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
    """Return whether a written question passed its checks."""
    return float(not prediction.get("fault", "it failed"))


def _rows(records: list[Record], chains: dict[str, Chain]) -> list[dict[str, Any]]:
    """Return what the records of a run hold, in the order of the chains."""
    by_title, rows = {record.question: record for record in records}, list[dict[str, Any]]()
    for title, chain in chains.items():
        if record := by_title.get(title):
            row = {"id": record.id, "split": chain.split, **record.extras.get("written", {"question": title})}
            asked = [one["question"] for one in kept(rows)]
            copied = "it repeats another question" if asked and f1(row["question"], asked) > _SAME else ""
            fault = f"failed: {record.failure.cause}" if record.failure else record.extras["fault"] or copied
            rows.append(row | ({"dropped": fault} if fault else {}))
    return rows
