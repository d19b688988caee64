"""Bamboogle (Press et al., Findings of EMNLP 2023): two-hop questions that a search engine does not answer.

Published as a table of ``Question`` and ``Answer``. It is for testing alone: none of its questions ever trains.
"""

from __future__ import annotations

from .base import DPR_PASSAGES, Fields, Hub, KnownTask, Row, words_id


def _read(row: Row) -> Fields:
    question = row.text("Question")
    return {
        "id": words_id("bamboogle", question),
        "question": question,
        "answers": [row.text("Answer")],
        "type": "compositional",
        "hops": 2,
    }


BAMBOOGLE = KnownTask(
    name="bamboogle",
    style="short",
    metric="cover-em",
    licence="MIT",
    citation="Press et al., Findings of EMNLP 2023",
    source="https://github.com/ofirpress/self-ask",
    sizes={"test": 125},
    only_split="test",
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="chiayewken/bamboogle",
        revision="5787baaae24a33baee4cf57a4cc743e8a02cd548",
        splits={"test": "test"},
        columns=("Question", "Answer"),
    ),
    files="the table as .csv or .tsv",
    read=_read,
    cells={2: ("Question", "Answer")},
)
