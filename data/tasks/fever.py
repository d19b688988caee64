"""FEVER (Thorne et al., NAACL 2018): is a claim supported, refuted, or neither?

From the hub and KILT's files (``fever-train-kilt.jsonl``, ``fever-dev-kilt.jsonl``): supported or refuted, and a prompt
offers these two. From the authors' files (``train.jsonl``, ``shared_task_dev.jsonl``, ``paper_dev.jsonl``,
``paper_test.jsonl``): also NOT ENOUGH INFO.
"""

from __future__ import annotations

from typing import Any

from .base import DPR_PASSAGES, SEARCHAIN_SUBSET, BadRow, Fields, KnownTask, Row, distinct_texts
from .kilt import KILT, kilt_hub, read_kilt

_LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-COLON-": ":"}


def _read(row: Row) -> Fields:
    fields = _read_claim(row) if "claim" in row.data else {**read_kilt(row), "style": "two-label"}
    if unknown := [label for label in fields["answers"] if label not in _LABELS]:
        raise BadRow(f"{row.place}: {unknown[0]!r} is no label; these are: {', '.join(_LABELS)}.")
    return {**fields, "type": "claim"}


def _read_claim(row: Row) -> Fields:
    sets: Any = row.data.get("evidence") or []
    pages = [piece[2] for group in sets for piece in group if isinstance(piece, list) and len(piece) > 2]
    return {
        "id": row.text("id"),
        "question": row.text("claim"),
        "answers": [row.text("label")],
        "gold_titles": distinct_texts(_title(page) for page in pages if isinstance(page, str)),
    }


def _title(page: str) -> str:
    """Return the article's title behind FEVER's name of it: ``Soul_Food_-LRB-film-RRB-``."""
    for written, meant in _BRACKETS.items():
        page = page.replace(written, meant)
    return page.replace("_", " ")


FEVER = KnownTask(
    name="fever",
    style="label",
    metric="label",
    licence="CC BY-SA 3.0",
    citation=f"Thorne et al., NAACL 2018; {KILT}",
    source="https://fever.ai",
    sizes={"train": 104_966, "dev": 10_444},
    corpus=DPR_PASSAGES,
    hub=kilt_hub("fever"),
    files="fever-train-kilt.jsonl and fever-dev-kilt.jsonl, or train.jsonl and shared_task_dev.jsonl",
    read=_read,
    samples={"searchain": SEARCHAIN_SUBSET},
)
