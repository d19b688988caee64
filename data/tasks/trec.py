"""TREC QA, curated (Voorhees and Tice, SIGIR 2000; Baudis and Sedivy, CLEF 2015): answers are regular expressions.

Published as ``large2180-train.tsv`` and ``large2180-test.tsv`` (number, kind, question, pattern), in a git repository
whose commit is part of the address; the hub has no form of it that `datasets` reads. There is no dev split: some
training questions become it, by a hash of their words. A pattern matches a part of the answer, in either case.
"""

from __future__ import annotations

import re

from .base import DPR_PASSAGES, BadRow, Fields, Hub, KnownTask, Row, words_id

_ADDRESS = "https://raw.githubusercontent.com/brmson/dataset-factoid-curated/087375a260f713cd5991b6cd615e55f972d50989/"
_CELLS = ("number", "kind", "question", "pattern")


def _read(row: Row) -> Fields:
    question, pattern = row.text("question"), row.text("pattern")
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadRow(f"{row.place}: {pattern!r} is no regular expression ({error}).") from None
    return {
        "id": words_id("trec", question),  # their numbers begin anew in each of the two sets
        "question": question,
        "answers": [pattern],
        "answers_are_regex": True,
        "type": "factoid",
        "hops": 1,
    }


TREC = KnownTask(
    name="trec",
    licence="not stated",
    citation="Voorhees and Tice, SIGIR 2000; Baudis and Sedivy, CLEF 2015",
    source="https://github.com/brmson/dataset-factoid-curated",
    sizes={"train": 1_486, "test": 694},
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="csv",
        splits={"train": "train", "test": "test"},
        files={"train": f"{_ADDRESS}large2180-train.tsv", "test": f"{_ADDRESS}large2180-test.tsv"},
        columns=_CELLS,
        # the file quotes nothing, and what looks like a null is an answer
        options={"sep": "\t", "names": list(_CELLS), "quoting": 3, "keep_default_na": False},
    ),
    files="large2180-train.tsv and large2180-test.tsv",
    read=_read,
    cells={4: _CELLS},
)
