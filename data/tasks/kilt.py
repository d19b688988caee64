"""The tasks of KILT (Petroni et al., NAACL 2021): one repository, one row format.

A row: ``id``, ``input``, ``output`` (entries of ``answer`` and ``provenance``, which names Wikipedia pages), ``meta``.
Answers of the test split are not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import BadRow, Fields, Hub, Row, distinct_texts

KILT = "KILT (Petroni et al., NAACL 2021)"
SOURCE = "https://github.com/facebookresearch/KILT"
_REVISION = "0f7881c6bf693742af91a31b4d8f827db2f41233"


def kilt_hub(config: str) -> Hub:
    """Return where the parquet files of a KILT task are."""
    return Hub(
        id="facebook/kilt_tasks",
        config=config,
        revision=_REVISION,
        columns=("id", "input", "output", "meta"),
    )


def read_kilt(row: Row) -> Fields:
    """Return what every KILT row holds: id, question, answers, titles of the pages that support them."""
    outputs = [output for output in row.records("output") if isinstance(output, Mapping)]
    answers = distinct_texts(output.get("answer") for output in outputs)
    if not answers:
        raise BadRow(f"{row.place}: 'output' holds no answer; the test split is published without any.")
    pages = [page for output in outputs for page in (output.get("provenance") or []) if isinstance(page, Mapping)]
    return {
        "id": row.text("id"),
        "question": row.text("input"),
        "answers": answers,
        "gold_titles": distinct_texts(page.get("title") for page in pages),
    }


def meta(row: Row) -> Mapping[str, Any]:
    """Return the ``meta`` column, empty if there is none."""
    found = row.data.get("meta")
    return found if isinstance(found, Mapping) else {}
