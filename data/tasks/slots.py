"""Slot filling asked as a question: zsRE (Levy et al., CoNLL 2017) and T-REx (Elsahar et al., LREC 2018) in KILT.

A subject and a relation become a question, whose answer is the object; ``input`` keeps ``subject [SEP] relation``.
zsRE is published as ``structured_zeroshot-train-kilt.jsonl`` and ``…-dev-kilt.jsonl``; its annotators wrote templates
that ask for the slot, of which the first of each row is the question, and the relations of dev are not those of train.
T-REx is published as ``trex-train-kilt.jsonl`` and ``trex-dev-kilt.jsonl``, without templates.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .base import DPR_PASSAGES, SEARCHAIN_SUBSET, Fields, KnownTask, Row, distinct
from .kilt import KILT, SOURCE, kilt_hub, meta, read_kilt

_SEPARATOR = " [SEP] "
"""Between subject and relation in KILT's input."""

_IRREGULAR = {
    "instance of": "What is {} an instance of?",
    "subclass of": "What is {} a subclass of?",
    "member of": "What is {} a member of?",
    "member of sports team": "Which sports team is {} a member of?",
    "position held": "Which position did {} hold?",
    "educated at": "Where was {} educated?",
    "has part": "What is a part of {}?",
    "present in work": "In which work is {} present?",
    "participant in": "What is {} a participant in?",
    "languages spoken, written or signed": "Which language does {} speak, write or sign?",
    "contains administrative territorial entity": "Which administrative territorial entity does {} contain?",
    "sports discipline competed in": "In which sports discipline does {} compete?",
}
_PARTICIPLE = re.compile(r"(\w+ed (?:in|on|at|by|from|for|to|with)) (?:the )?(.+)")
_OPEN = re.compile(r".*\b(?:in|on|at|by|of|to|from|for|with|after)")


def slot_question(subject: str, relation: str) -> str:
    """Return a question for the object of a relation, which is named as Wikidata does: ``place of birth``."""
    if relation in _IRREGULAR:
        return _IRREGULAR[relation].format(subject)
    if found := _PARTICIPLE.fullmatch(relation):
        return f"Which {found[2]} is {subject} {found[1]}?"
    if _OPEN.fullmatch(relation):
        return f"What is {subject} {relation}?"
    return f"What is the {relation} of {subject}?"


def readable(question: str) -> str:
    """Return KILT's ``subject [SEP] relation`` as a question, and any other text as it is."""
    subject, separator, relation = question.partition(_SEPARATOR)
    return slot_question(subject.strip(), relation.strip()) if separator else question


def _read_zsre(row: Row) -> Fields:
    return _read(row, distinct(meta(row).get("template_questions") or []))


def _read_trex(row: Row) -> Fields:
    return _read(row, [])


def _read(row: Row, templates: list[str]) -> Fields:
    fields = read_kilt(row)
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
    read=_read_zsre,
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
    read=_read_trex,
)
