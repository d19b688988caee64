"""ELI5 (Fan et al., ACL 2019): questions that want a paragraph for an answer.

From the hub and KILT's files (``eli5-train-kilt.jsonl``, ``eli5-dev-kilt.jsonl``), which have several answers; or
ALCE's sample (``eli5_eval_bm25_top100.json``; Gao et al., EMNLP 2023), which has one, and the claims in it.
"""

from __future__ import annotations

from .base import DPR_PASSAGES, SEARCHAIN_SUBSET, Fields, KnownTask, Row, words_id
from .kilt import KILT, kilt_hub, read_kilt


def _read(row: Row) -> Fields:
    if "question" not in row.data:
        return {**read_kilt(row), "type": "long-form"}
    question = row.text("question")
    return {
        "id": words_id("eli5", question),
        "question": question,
        "answers": [row.text("answer")],
        "type": "long-form",
        "claims": row.data.get("claims") or [],
    }


ELI5 = KnownTask(
    name="eli5",
    style="long",
    metric="rouge-l",
    licence="not stated",
    citation=f"Fan et al., ACL 2019; {KILT}",
    source="https://github.com/facebookresearch/ELI5",
    sizes={"train": 272_634, "dev": 1_507},
    corpus=DPR_PASSAGES,
    hub=kilt_hub("eli5"),
    files="eli5-train-kilt.jsonl and eli5-dev-kilt.jsonl, or ALCE's eli5_eval_bm25_top100.json",
    read=_read,
    samples={"searchain": SEARCHAIN_SUBSET},
)
