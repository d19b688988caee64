"""HoVer (Jiang et al., Findings of EMNLP 2020): claims that two to four articles together support, or not.

Published as ``hover_train_release_v1.1.json`` and ``hover_dev_release_v1.1.json``; labels of the test split are hidden.
A claim is asked as it stands: yes if it is supported, no if it is not (the authors merge refuted and unproven ones).
DSPy's tutorial on multi-hop search and LangProBe score on it how many of the supporting articles are found.
"""

from __future__ import annotations

from .base import WIKIPEDIA_2017, BadRow, Fields, Hub, KnownTask, Row, distinct_texts

_ADDRESS = "https://raw.githubusercontent.com/hover-nlp/hover/39b84697f196308f398a251a7aea9b82ae0f0562/data/hover/"
_FILES = {split: f"{_ADDRESS}hover_{split}_release_v1.1.json" for split in ("train", "dev")}
_ANSWERS = {"SUPPORTED": "yes", "NOT_SUPPORTED": "no"}


def _read(row: Row) -> Fields:
    label, facts = row.text("label"), row.records("supporting_facts")
    if label not in _ANSWERS:
        raise BadRow(f"{row.place}: {label!r} is no label; these are: {', '.join(_ANSWERS)}.")
    return {
        "id": row.text("uid"),
        "question": row.text("claim"),
        "answers": [_ANSWERS[label]],
        "type": "claim",
        "hops": row.needed("num_hops"),
        "gold_titles": distinct_texts(fact["key"] if isinstance(fact, dict) else fact[0] for fact in facts),
    }


HOVER = KnownTask(
    name="hover",
    style="yes-no",
    metric="yes-no",
    licence="CC BY-SA 4.0",
    citation="Jiang et al., Findings of EMNLP 2020",
    source="https://github.com/hover-nlp/hover",
    sizes={"train": 18_171, "dev": 4_000},
    corpus=WIKIPEDIA_2017,
    hub=Hub(
        id="json",
        splits={"train": "train", "dev": "dev"},
        files=_FILES,
        columns=("uid", "claim", "label", "supporting_facts", "num_hops"),
    ),
    files="hover_train_release_v1.1.json, hover_dev_release_v1.1.json",
    read=_read,
)
