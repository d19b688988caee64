"""2WikiMultiHopQA (Ho et al., COLING 2020): two to four hops, each evidence a triple of Wikidata.

Published as ``train.json`` and ``dev.json`` in HotpotQA's format with ``evidences`` (subject, relation, object);
answers of the test split are hidden: papers score on dev. The first author's repository on the hub holds parquet
files, whose nested columns are JSON text, and a script, for which `datasets` 4 refuses it: only the files are read. The
triples become steps, each the question that its relation asks of its subject.

The authors' score (version 1.1 of their script) also takes the aliases and demonyms of the answer's Wikidata item. They
are read from ``id_aliases.json`` where it is given with the authors' files; the hub has none.
"""

from __future__ import annotations

import re
from typing import Any

from ..relations import relation_question
from .base import (
    BLENDFILTER,
    OWN_PARAGRAPHS,
    SEARCHAIN_SUBSET,
    TREE_OF_REVIEWS,
    BadRow,
    Fields,
    Hub,
    KnownTask,
    Row,
    distinct_texts,
)
from .hotpotqa import read_supported

_ADDRESS = "hf://datasets/xanhho/2WikiMultihopQA@612bc5039a457880d9e7d84c3b0a4cf154b70e4f/"


def _read(row: Row) -> Fields:
    fields = read_supported(row)
    triples = [_triple(row, entry) for entry in row.records("evidences")]
    by_name = {_plain(title): title for title in fields["gold_titles"]}
    answered: dict[str, int] = {}
    steps = []
    for number, (subject, relation, answer) in enumerate(triples, start=1):
        earlier = answered.get(_plain(subject))
        asked = relation_question(f"#{earlier}" if earlier else subject, relation)
        steps.append({"question": asked, "answer": answer, "support_title": by_name.get(_plain(subject))})
        answered.setdefault(_plain(answer), number)
    fields["answers"] = distinct_texts([*fields["answers"], *_aliases(row)])
    return {**fields, "hops": len(triples) or fields["hops"], "steps": steps, "evidences": triples}


def _aliases(row: Row) -> list[Any]:
    """Return the other names of the answer, if the file of aliases was given."""
    known = row.references.get(str(row.data.get("answer_id")))
    names = [known.get(kind) for kind in ("aliases", "demonyms")] if isinstance(known, dict) else []
    return [name for given in names if isinstance(given, list) for name in given]


def _triple(row: Row, entry: Any) -> tuple[str, str, str]:
    values = list(entry.values()) if isinstance(entry, dict) else entry
    if not isinstance(values, list) or len(values) != 3 or not all(isinstance(v, str) and v.strip() for v in values):
        raise BadRow(f"{row.place}: {entry!r} in 'evidences' is no triple of texts.")
    return values[0].strip(), values[1].strip(), values[2].strip()


def _plain(name: str) -> str:
    """Return a title without what tells it apart: ``Atomised (film)`` is the triple's ``Atomised``."""
    return re.sub(r"\s*\([^)]*\)$", "", name).strip().lower()


TWOWIKI = KnownTask(
    name="2wikimultihopqa",
    licence="Apache-2.0",
    citation="Ho et al., COLING 2020",
    source="https://github.com/Alab-NII/2wikimultihop",
    sizes={"train": 167_454, "dev": 12_576},
    corpus=OWN_PARAGRAPHS,
    hub=Hub(
        id="parquet",
        splits={"train": "train", "dev": "dev"},
        files={"train": f"{_ADDRESS}train.parquet", "dev": f"{_ADDRESS}dev.parquet"},
        columns=("_id", "type", "question", "context", "supporting_facts", "evidences", "answer"),
    ),
    files="train.json, dev.json, with id_aliases.json",
    read=_read,
    references="aliases",
    reference_id="Q_id",
    samples={"searchain": SEARCHAIN_SUBSET, "tree-of-reviews": TREE_OF_REVIEWS, "blendfilter": BLENDFILTER},
)
