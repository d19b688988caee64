"""PopQA (Mallen et al., ACL 2023): one fact of Wikidata each, most of them about little known things.

Published as one table, ``test.tsv``, here read from the hub or as JSON lines of the same columns. It is for testing
alone. ``possible_answers`` is a JSON list of all names of the answer.
"""

from __future__ import annotations

from .base import DPR_PASSAGES, Fields, Hub, KnownTask, Row
from .open_questions import answers_of


def _read(row: Row) -> Fields:
    return {
        "id": row.text("id"),
        "question": row.text("question"),
        "answers": answers_of(row, "possible_answers"),
        "type": "factoid",
        "hops": 1,
    }


POPQA = KnownTask(
    name="popqa",
    licence="MIT",
    citation="Mallen et al., ACL 2023",
    source="https://github.com/AlexTMallen/adaptive-retrieval",
    sizes={"test": 14_267},
    only_split="test",
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="akariasai/PopQA",
        revision="098765c79ea10a2cb19c828324e33281b8336ec0",
        splits={"test": "test"},
        columns=("id", "question", "possible_answers"),
    ),
    files="the rows of test.tsv as JSON lines",
    read=_read,
)
