"""Questions with answers and little else, in the forms that open-domain QA is published in: NQ-open, Bamboogle, PopQA.

NQ-open (Kwiatkowski et al., TACL 2019; Lee et al., ACL 2019): questions typed into a search engine, published as
``NQ-open.train.jsonl`` and ``NQ-open.dev.jsonl``. DPR (Karpukhin et al., EMNLP 2020) publishes ``…-train.qas.csv``
(question, tab, a list of answers in brackets), and ``biencoder-…-train.json``, in which each question has passages
that hold its answer.

Bamboogle (Press et al., Findings of EMNLP 2023): two-hop questions that a search engine does not answer, published as a
table of ``Question`` and ``Answer``. PopQA (Mallen et al., ACL 2023): one fact of Wikidata each, most of them about
little known things, published as ``test.tsv``, here read from the hub or as JSON lines of the same columns. Both are
for testing alone: none of their questions ever trains.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...common.json_files import written_list
from .base import DPR_PASSAGES, BadRow, Fields, Hub, KnownTask, Row, distinct_texts, words_id

QUESTION_AND_ANSWERS = {2: ("question", "answers")}
"""The cells of DPR's tab-separated files."""


def read_open(row: Row, prefix: str) -> Fields:
    """Return a question, its answers, and DPR's gold passage if the row has one."""
    asked = row.text("question")
    passages = [one for one in row.data.get("positive_ctxs") or [] if isinstance(one, Mapping) and one.get("text")]
    return {
        "id": words_id(prefix, asked),
        "question": asked,
        "answers": answers_of(row, "answer" if "answer" in row.data else "answers"),
        "type": "factoid",
        "hops": 1,
        # DPR's first positive passage is the gold one, the others only hold the answer's words
        "gold_titles": distinct_texts(one.get("title") for one in passages[:1]),
        "paragraphs": [
            {"title": one.get("title") or "", "text": one["text"], "is_supporting": True} for one in passages[:1]
        ],
    }


def answers_of(row: Row, column: str) -> list[str]:
    """Return a list of answers, which may be written as JSON (PopQA) or as Python writes it (DPR's ``.qas.csv``)."""
    value: Any = row.needed(column)
    if isinstance(value, str):
        try:
            value = written_list(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # the last two: nested too deep
            raise BadRow(f"{row.place}: {value[:100]!r} in {column!r} is no list of answers.") from None
    answers = distinct_texts(value) if isinstance(value, list) else []
    if not answers:
        raise BadRow(f"{row.place}: {column!r} holds no answer.")
    return answers


NQ = KnownTask(
    name="nq",
    licence="CC BY-SA 3.0",
    citation="Kwiatkowski et al., TACL 2019; Lee et al., ACL 2019",
    source="https://ai.google.com/research/NaturalQuestions",
    sizes={"train": 87_925, "dev": 3_610},
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="google-research-datasets/nq_open",
        config="nq_open",
        revision="5dd9790a83002ad084ddeb7c420dc716852c6f28",
        columns=("question", "answer"),
    ),
    files="NQ-open.train.jsonl and NQ-open.dev.jsonl, or DPR's biencoder-nq-train.json and biencoder-nq-dev.json",
    read=partial(read_open, prefix="nq"),
    cells=QUESTION_AND_ANSWERS,
)


def _read_bamboogle(row: Row) -> Fields:
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
    read=_read_bamboogle,
    cells={2: ("Question", "Answer")},
)


def _read_popqa(row: Row) -> Fields:
    return {
        "id": row.text("id"),
        "question": row.text("question"),
        "answers": answers_of(row, "possible_answers"),  # all names of the answer
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
    read=_read_popqa,
)
