"""PhantomWiki (Gong et al., ICML 2025, arXiv 2502.20377): an invented world, in which nothing can be remembered.

Questions have one answer, several that are all needed, a count, or none. Its generator writes ``questions.json`` and
``articles.json``: a world of one's own, as its authors advise, whose questions are split by their words. The hub has
worlds of theirs; of these the first of 500 articles is read, all of it as dev. Each article is a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .base import BadRow, Corpus, Fields, Hub, KnownTask, Row

_HEADING = re.compile(r"^#+\s*(.*?):?\s*$")


def _read(row: Row) -> Fields:
    question, answers = row.text("question"), [str(one) for one in row.records("answer")]
    kind = {0: "none", 1: "one"}.get(len(answers), "several")
    if kind == "one" and question.lower().startswith("how many"):
        kind = "count"
    return {
        "id": row.text("id"),
        "question": question,
        "answers": answers,
        "style": "list" if kind == "several" else "short",
        "type": kind,
        "hops": row.data.get("difficulty") or None,  # reasoning steps; generators before 1.0 do not tell them
    }


def _passages(articles: Mapping[str, Any]) -> Iterator[Fields]:
    """Yield the articles: a heading becomes the word before a colon, and the title is not told twice."""
    if not articles:
        raise BadRow("phantomwiki is answered from its articles: give articles.json beside questions.json.")
    for title, article in articles.items():
        lines = Row(f"article {title!r}", article).text("article").splitlines()
        told = [_HEADING.sub(r"\1:", line.strip()) for line in lines]
        yield {"title": title, "text": " ".join(line for line in told if line not in ("", f"{title}:"))}


PHANTOMWIKI = KnownTask(
    name="phantomwiki",
    style="mixed",
    metric="by-style",
    licence="MIT",
    citation="Gong et al., ICML 2025 (PhantomWiki)",
    source="https://github.com/kilian-group/phantom-wiki",
    sizes={"dev": 500},
    corpus=Corpus("its own articles"),
    hub=Hub(
        id="kilian-group/phantom-wiki-v1",
        config="question-answer",
        revision="9369f9c64655f4e8146afee75ae5d3e3a95d7df5",
        splits={"dev": "depth_20_size_500_seed_1"},
        columns=("id", "question", "answer"),
        references="text-corpus",
    ),
    files="questions.json with articles.json",
    read=_read,
    references="articles",
    reference_id="title",
    passages=_passages,
)
