"""Slot filling asked as a question: zsRE (Levy et al., CoNLL 2017) and T-REx (Elsahar et al., LREC 2018) in KILT.

A subject and a relation become a question, whose answer is the object; ``input`` keeps ``subject [SEP] relation``.
zsRE is published as ``structured_zeroshot-train-kilt.jsonl`` and ``…-dev-kilt.jsonl``; its annotators wrote templates
that ask for the slot, of which the first of each row is the question, and the relations of dev are not those of train.
T-REx is published as ``trex-train-kilt.jsonl`` and ``trex-dev-kilt.jsonl``, without templates.
"""

from __future__ import annotations

from dataclasses import replace

from ..relations import relation_question
from .base import DPR_PASSAGES, SEARCHAIN_SUBSET, Fields, KnownTask, Row, distinct_texts
from .kilt import KILT, SOURCE, kilt_hub, meta, read_kilt

_SEPARATOR = " [SEP] "
"""Between subject and relation in KILT's input."""


def readable(question: str) -> str:
    """Return KILT's ``subject [SEP] relation`` as a question, and any other text as it is."""
    subject, separator, relation = question.partition(_SEPARATOR)
    return relation_question(subject.strip(), relation.strip()) if separator else question


def _read(row: Row) -> Fields:
    fields, templates = read_kilt(row), distinct_texts(meta(row).get("template_questions") or [])
    asked = fields["question"]
    return {
        **fields,
        "question": templates[0] if templates else readable(asked),
        "input": asked,
        "type": asked.partition(_SEPARATOR)[2] or None,
        "hops": 1,
    }


ZSRE = KnownTask(
    name="zsre",
    licence="MIT",
    citation=f"Levy et al., CoNLL 2017; {KILT}",
    source=SOURCE,
    sizes={"train": 147_909, "dev": 3_724},
    corpus=DPR_PASSAGES,
    hub=kilt_hub("structured_zeroshot"),
    files="structured_zeroshot-train-kilt.jsonl, structured_zeroshot-dev-kilt.jsonl",
    read=_read,
    readable=readable,
    samples={"searchain": SEARCHAIN_SUBSET},
)

TREX = replace(
    ZSRE,
    name="trex",
    citation=f"Elsahar et al., LREC 2018; {KILT}",
    sizes={"train": 2_284_168, "dev": 5_000},
    hub=kilt_hub("trex"),
    files="trex-train-kilt.jsonl, trex-dev-kilt.jsonl",
)
