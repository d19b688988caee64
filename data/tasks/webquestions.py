"""WebQuestions (Berant et al., EMNLP 2013): questions about Freebase's entities.

Published as ``webquestions.examples.train.json`` and ``….test.json`` (``utterance``, ``targetValue``), tidied up with
ids as brmson's ``trainmodel.json``, ``devtest.json``, ``val.json``, ``test.json`` (``qId``, ``qText``, ``answers``),
and by DPR. There is no dev split: where no file gives one, some training questions become it, by a hash of their words.
"""

from __future__ import annotations

import re

from .base import DPR_PASSAGES, BadRow, Fields, Hub, KnownTask, Row, words_id
from .open_questions import QUESTION_AND_ANSWERS, answers_of, read_open

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^\s()]+))\)')
_ESCAPED = re.compile(r"\\(.)")


def _read(row: Row) -> Fields:
    if "utterance" in row.data:
        described = _DESCRIPTION.findall(row.text("targetValue"))
        answers = [_ESCAPED.sub(r"\1", quoted) or bare for quoted, bare in described]
        if not answers:
            raise BadRow(f"{row.place}: 'targetValue' describes no answer.")
        question = row.text("utterance")
        return {**_FIXED, "id": words_id("webquestions", question), "question": question, "answers": answers}
    if "qText" in row.data:
        answers = answers_of(row, "answers")
        return {**_FIXED, "id": row.text("qId"), "question": row.text("qText"), "answers": answers}
    return read_open(row, "webquestions")


_FIXED = {"type": "factoid", "hops": 1}

WEBQUESTIONS = KnownTask(
    name="webquestions",
    licence="CC BY 4.0",
    citation="Berant et al., EMNLP 2013",
    source="https://github.com/brmson/dataset-factoid-webquestions",
    sizes={"train": 3_778, "test": 2_032},
    corpus=DPR_PASSAGES,
    hub=Hub(
        id="stanfordnlp/web_questions",
        revision="0e473cbe21d1e91ec18da343644498be6a3f5454",
        splits={"train": "train", "test": "test"},
        columns=("question", "answers"),
    ),
    files="webquestions.examples.train.json and webquestions.examples.test.json, or brmson's main/*.json",
    read=_read,
    cells=QUESTION_AND_ANSWERS,
)
