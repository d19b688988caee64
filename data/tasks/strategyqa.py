"""StrategyQA (Geva et al., TACL 2021): yes-no questions whose steps are implicit.

Published as ``strategyqa_train.json`` (question, answer, facts, decomposition, evidence) and
``strategyqa_train_paragraphs.json`` (the evidence's paragraphs by id); answers of its test file are hidden, and
BIG-bench's form (``task.json``) is the same training questions. So one labelled set must serve for training
and for scoring:

- its first 500 questions, on which ITER-RETGEN and BlendFilter score, are our ``dev`` and never train;
- the others go to ``train`` or ``test`` by a hash of their words.

The hub repository has a split of its own, in another order and without decompositions: there ``test`` is the published
one, and of ``train`` some go to ``dev`` by the hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..task import Split, split_by_hash
from .base import OWN_PARAGRAPHS, BadRow, Fields, Hub, KnownTask, Row, Sample, distinct_texts, words_id

_SCORED_BY_THE_PAPERS = 500


def _read(row: Row) -> Fields:
    if "input" in row.data:
        return _read_big_bench(row)
    answer = row.needed("answer")
    if not isinstance(answer, bool):
        raise BadRow(f"{row.place}: 'answer' is {answer!r}, where true or false is needed.")
    steps = row.data.get("decomposition") or []
    evidence = distinct_texts(_paragraph_ids(row.data.get("evidence") or []))
    return {
        "id": row.text("qid"),
        "question": row.text("question"),
        "answers": ["yes" if answer else "no"],
        "type": "boolean",
        "hops": len(steps) or None,
        "gold_titles": distinct_texts(name.rpartition("-")[0] for name in evidence),
        "steps": [{"question": step} for step in steps],
        "facts": row.data.get("facts") or [],
        "paragraphs": [_paragraph(row, name) for name in evidence if name in row.references],
    }


def _read_big_bench(row: Row) -> Fields:
    scores = row.needed("target_scores")
    if not isinstance(scores, Mapping) or {str(name).lower() for name in scores} != {"yes", "no"}:
        raise BadRow(f"{row.place}: 'target_scores' is {scores!r}, where scores of Yes and No are needed.")
    question = row.text("input")
    answer = max(scores, key=lambda name: scores[name]).lower()
    return {"id": words_id("strategyqa", question), "question": question, "answers": [answer], "type": "boolean"}


def _paragraph_ids(evidence: Any) -> Iterator[str]:
    """Yield the ids in the nested lists of the annotators; other texts there say that there is no evidence."""
    if isinstance(evidence, str):
        if evidence not in {"no_evidence", "operation"}:
            yield evidence
    elif isinstance(evidence, list):
        for part in evidence:
            yield from _paragraph_ids(part)


def _paragraph(row: Row, name: str) -> Fields:
    found = row.references[name]
    if not isinstance(found, Mapping) or not found.get("content"):
        raise BadRow(f"{row.place}: paragraph {name!r} has no 'content'.")
    return {"title": found.get("title") or name.rpartition("-")[0], "text": found["content"], "is_supporting": True}


def _place(published: Split | None, row: Row, words: str, number: int) -> Split:
    by_hash = split_by_hash(words)
    if "evidence" in row.data:  # the authors' file
        if number <= _SCORED_BY_THE_PAPERS:
            return "dev"
        return "train" if by_hash == "train" else "test"
    if published == "train":
        return "dev" if by_hash == "dev" else "train"
    return published or by_hash


STRATEGYQA = KnownTask(
    name="strategyqa",
    style="yes-no",
    metric="yes-no",
    licence="MIT",
    citation="Geva et al., TACL 2021",
    source="https://allenai.org/data/strategyqa",
    sizes={"train": 1_603, "test": 687},
    corpus=OWN_PARAGRAPHS,
    hub=Hub(
        id="ChilleD/StrategyQA",
        revision="705562638fe1d8ca6bb98c66fc8f94d45fda8c83",
        splits={"train": "train", "test": "test"},
        columns=("qid", "question", "answer", "facts"),
    ),
    files="strategyqa_train.json with strategyqa_train_paragraphs.json, or BIG-bench's task.json",
    read=_read,
    references="paragraphs",
    unpack=lambda document: document.get("examples"),
    place=_place,
    samples={
        "searchain": Sample(
            "Xu et al., WWW 2024, section 4.1: BIG-bench's form, all 2,290; here those of them that do not train",
            splits=("dev", "test"),
        ),
        "blendfilter": Sample("Wang et al., EMNLP 2024, after Shao et al., 2023: the first 500 of the file", first=500),
    },
)
