"""The gold passages of recorded questions, told from a corpus by title and answer."""

import json
from pathlib import Path

import pytest
from recorded_gold import gold_of, passages_by_title, rows_with_gold

from questree.data import read_questions
from questree.metrics import passage_fingerprint

TEXTS = {"Prague": ["It lies on the Vltava.", "It was founded in 880."], "Kafka": ["Born in Prague."]}
STEPS = [
    {"question": "Where was Kafka born?", "answer": "Prague", "support_title": "Kafka"},
    {"question": "Which river flows through #1?", "answer": "Vltava", "support_title": "Prague"},
]
ROW = {"id": "q", "task": "tiny", "question": "Which river?", "answers": ["Vltava"], "steps": STEPS}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [{"id": text, "title": title, "text": text} for title, texts in TEXTS.items() for text in texts]
    file = tmp_path / "corpus.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def told(tmp_path: Path, corpus: Path, **changes: object) -> list[dict[str, object]]:
    file = tmp_path / "recorded.jsonl"
    row = {**ROW, "gold_titles": ["Kafka", "Prague"], **changes}
    file.write_text(json.dumps(row) + "\n" + json.dumps({**ROW, "id": "other", "task": "else"}), encoding="utf-8")
    return [json.loads(line) for line in rows_with_gold(file, corpus, "tiny")]


def test_a_title_alone_or_the_answer_of_its_step_tells_the_passage(tmp_path: Path, corpus: Path) -> None:
    (row,) = told(tmp_path, corpus)
    gold = [("Kafka", "Born in Prague."), ("Prague", "It lies on the Vltava.")]
    assert row["gold_passages"] == [passage_fingerprint(*one) for one in gold]
    assert row["id"] == "q"


def test_a_question_is_left_out_if_two_passages_may_be_meant_or_none(tmp_path: Path, corpus: Path) -> None:
    other = [STEPS[0], {**STEPS[1], "answer": "Elbe"}]
    assert told(tmp_path, corpus, steps=other) == []
    assert told(tmp_path, corpus, steps=[STEPS[0]]) == []
    assert told(tmp_path, corpus, gold_titles=["Kafka", "Brno"]) == []


def test_it_is_right_where_the_paragraphs_are_known(shared_data: Path) -> None:
    by_title = passages_by_title(shared_data / "corpora" / "musique.jsonl")
    known = read_questions(shared_data / "musique.jsonl")
    found = [(set(gold_of(one, by_title)), set(one.known_gold())) for one in known]
    assert sum(bool(gold) for gold, _ in found) == 140
    assert sum(gold == true for gold, true in found) == 138
