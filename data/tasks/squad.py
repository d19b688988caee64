"""SQuAD 1.1 (Rajpurkar et al., EMNLP 2016): each question with the passage that answers it.

Published as ``train-v1.1.json`` and ``dev-v1.1.json`` (articles of paragraphs of questions); test is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import OWN_PARAGRAPHS, BadRow, Fields, Hub, KnownTask, Row, distinct_texts


def _read(row: Row) -> Fields:
    title = row.text("title").replace("_", " ")
    found: Any = row.needed("answers")
    texts = found.get("text") if isinstance(found, Mapping) else [one.get("text") for one in found]
    answers = distinct_texts(texts or [])
    if not answers:
        raise BadRow(f"{row.place}: 'answers' holds no answer.")
    return {
        "id": row.text("id"),
        "question": row.text("question"),
        "answers": answers,
        "type": "span",
        "hops": 1,
        "gold_titles": [title],
        "paragraphs": [{"title": title, "text": row.text("context"), "is_supporting": True}],
    }


def _questions(document: Mapping[str, Any]) -> Iterator[Any]:
    for article in document["data"]:
        for paragraph in article.get("paragraphs", []):
            for question in paragraph.get("qas", []):
                yield {**question, "title": article.get("title"), "context": paragraph.get("context")}


SQUAD = KnownTask(
    name="squad",
    licence="CC BY-SA 4.0",
    citation="Rajpurkar et al., EMNLP 2016",
    source="https://rajpurkar.github.io/SQuAD-explorer/",
    sizes={"train": 87_599, "dev": 10_570},
    corpus=OWN_PARAGRAPHS,
    hub=Hub(
        id="rajpurkar/squad",
        config="plain_text",
        revision="7b6d24c440a36b6815f21b70d25016731768db1f",
        columns=("id", "title", "context", "question", "answers"),
    ),
    files="train-v1.1.json, dev-v1.1.json",
    read=_read,
    unpack=_questions,
)
