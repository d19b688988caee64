"""HotpotQA (Yang et al., EMNLP 2018): two-hop questions over Wikipedia, with ten paragraphs each or without.

Published as ``hotpot_train_v1.1.json``, ``hotpot_dev_distractor_v1.json``, ``hotpot_dev_fullwiki_v1.json``. Answers of
the test split are hidden, so papers score on dev. The full-wiki questions are the same; their paragraphs, which a
baseline retrieved, are left out: the corpus is all of Wikipedia.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .base import (
    BLENDFILTER,
    OWN_PARAGRAPHS,
    SEARCHAIN_WHOLE,
    TREE_OF_REVIEWS,
    WIKIPEDIA_2017,
    BadRow,
    Fields,
    Hub,
    KnownTask,
    Row,
    distinct_texts,
)


def read_supported(row: Row, *, paragraphs: bool = True) -> Fields:
    """Return question, answer, supporting titles and paragraphs of a row; 2WikiMultiHopQA has the same format.

    ``context`` holds ``[title, sentences]`` and ``supporting_facts`` ``[title, sentence number]``, as the authors
    publish them, or the same by name, as the hub has them.
    """
    facts = [_pair(row, "supporting_facts", fact) for fact in row.records("supporting_facts")]
    titles = distinct_texts(title for title, _ in facts)
    fields: Fields = {
        "id": row.text("id" if "id" in row.data else "_id"),
        "question": row.text("question"),
        "answers": [row.text("answer")],
        "type": row.data.get("type"),
        "hops": len(titles) or None,
        "gold_titles": titles,
    }
    if paragraphs:
        shown = (_pair(row, "context", paragraph) for paragraph in row.records("context"))
        fields["paragraphs"] = [
            {"title": title, "text": text, "is_supporting": title in titles, **_facts(title, sentences, facts)}
            for title, sentences in shown
            if (text := _joined(sentences))
        ]
    return fields


def _facts(title: str, sentences: Sequence[Any], facts: Sequence[tuple[str, Any]]) -> Fields:
    """Return the sentences of a supporting paragraph, and the numbers of those that support; nothing of another."""
    numbers = sorted({number for of, number in facts if of == title})
    return {"sentences": [str(one).strip() for one in sentences], "supporting": numbers} if numbers else {}


def _pair(row: Row, column: str, entry: Any) -> tuple[str, Any]:
    values = list(entry.values()) if isinstance(entry, Mapping) else entry
    if not isinstance(values, list) or len(values) < 2 or not isinstance(values[0], str):
        raise BadRow(f"{row.place}: {entry!r} in {column!r} is no title with what belongs to it.")
    return values[0], values[1]


def _joined(sentences: Any) -> str:
    # HotpotQA's sentences begin with their space, 2WikiMultiHopQA's do not
    return " ".join(str(sentence).strip() for sentence in sentences).strip() if isinstance(sentences, list) else ""


_DISTRACTOR = Hub(
    id="hotpotqa/hotpot_qa",
    config="distractor",
    revision="1908d6afbbead072334abe2965f91bd2709910ab",
    columns=("id", "question", "answer", "type", "supporting_facts", "context"),
)

HOTPOTQA = KnownTask(
    name="hotpotqa",
    licence="CC BY-SA 4.0",
    citation="Yang et al., EMNLP 2018",
    source="https://hotpotqa.github.io",
    sizes={"train": 90_447, "dev": 7_405},
    corpus=OWN_PARAGRAPHS,
    hub=_DISTRACTOR,
    files="hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json",
    read=read_supported,
    samples={"searchain": SEARCHAIN_WHOLE, "tree-of-reviews": TREE_OF_REVIEWS, "blendfilter": BLENDFILTER},
)

HOTPOTQA_FULLWIKI = replace(
    HOTPOTQA,
    name="hotpotqa-fullwiki",
    corpus=WIKIPEDIA_2017,
    hub=replace(_DISTRACTOR, config="fullwiki"),
    files="hotpot_train_v1.1.json, hotpot_dev_fullwiki_v1.json",
    read=partial(read_supported, paragraphs=False),
)
