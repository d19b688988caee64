"""TriviaQA (Joshi et al., ACL 2017), the unfiltered questions, without their documents.

Published as ``unfiltered-web-train.json`` and ``unfiltered-web-dev.json`` (``Data``: entries with ``QuestionId``,
``Question``, ``Answer``); answers of the test split are hidden. DPR's tab-separated files are read too.
"""

from __future__ import annotations

from collections.abc import Mapping

from .base import DPR_PASSAGES, BadRow, Fields, Hub, KnownTask, Row, distinct_texts
from .open_questions import QUESTION_AND_ANSWERS, read_open


def _read(row: Row) -> Fields:
    columns = {name.lower().replace("_", ""): name for name in row.data}  # the hub writes question_id
    if "questionid" not in columns:
        return read_open(row, "triviaqa")
    answer = row.needed(columns.get("answer", "answer"))
    if not isinstance(answer, Mapping):
        raise BadRow(f"{row.place}: 'answer' is a {type(answer).__name__}, where value and aliases are needed.")
    parts = {str(name).lower(): value for name, value in answer.items()}
    answers = distinct_texts([parts.get("value"), *(parts.get("aliases") or [])])
    if not answers or answers == ["<unk>"]:
        raise BadRow(f"{row.place}: it has no answer; the test split is published without any.")
    question = row.text(columns.get("question", "question"))
    return {
        "id": row.text(columns["questionid"]),
        "question": question,
        "answers": answers,
        "type": "factoid",
        "hops": 1,
    }


TRIVIAQA = KnownTask(
    name="triviaqa",
    licence="Apache-2.0",
    citation="Joshi et al., ACL 2017",
    source="https://nlp.cs.washington.edu/triviaqa/",
    sizes={"train": 87_622, "dev": 11_313},
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="mandarjoshi/trivia_qa",
        config="unfiltered.nocontext",
        revision="0f7faf33a3908546c6fd5b73a660e0f8ff173c2f",
        columns=("question", "question_id", "answer"),
    ),
    files="unfiltered-web-train.json and unfiltered-web-dev.json, or DPR's trivia-train.qas.csv and trivia-dev.qas.csv",
    read=_read,
    unpack=lambda document: document.get("Data"),
    cells=QUESTION_AND_ANSWERS,
)
