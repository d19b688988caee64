"""What a person decides on the questions of a file: it is written at once, and the task is what was not dropped."""

import json
from pathlib import Path

import pytest

from questree.common.errors import QuestreeError
from questree.data import load_task
from questree.data.question_files import raw_rows, read_questions
from questree.data.review import answer_lines, decide, with_reviewed, write_rows

ROWS = [
    {
        "question": "Who painted Water Lilies?",
        "answers": ["Claude Monet", "Monet"],
        "steps": [{"question": "Who?", "answer": "Claude Monet"}],
        "quotes": ["Monet"],
    },
    {"question": "Which two rivers meet?", "answers": [["Inn", "En"], "Ilz"], "style": "list"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_rows(tmp_path / "own.jsonl", ROWS)
    return tmp_path / "own.jsonl"


def decided(file: Path, number: int, decision: str = "keep", **words) -> dict:
    row = raw_rows(file)[number]
    given = {"question": row["question"], "answers": answer_lines(row)} | words
    decide(file, row["id"], decision, **given)
    return json.loads(file.read_text(encoding="utf-8").splitlines()[number])


def test_what_is_kept_as_it_was_is_as_it_was(file: Path) -> None:
    for number, before in enumerate(ROWS):
        assert before.items() <= (after := decided(file, number)).items()
        assert after["review"] == "keep"
    before = raw_rows(file)
    assert decided(file, 0) == before[0]


def test_what_is_dropped_stays_in_the_file_and_is_not_in_the_task(file: Path) -> None:
    row = decided(file, 0, "drop", note="too easy")
    assert (row["review"], row["dropped"], row["note"]) == ("drop", "in review", "too easy")
    assert [one.question for one in read_questions(file)] == [ROWS[1]["question"]]
    assert sum(map(len, load_task(file).questions.values())) == 1
    row = decided(file, 0)
    assert row["review"] == "keep"
    assert {"dropped", "note"}.isdisjoint(row)
    assert len(read_questions(file)) == 2


def test_a_mended_question_keeps_its_id_its_split_and_its_steps(file: Path) -> None:
    before = raw_rows(file)[0]
    row = decided(file, 0, question="Who  painted\nthe Lilies?", answers=["Édouard Manet", " "])
    assert (row["id"], row["split"]) == (before["id"], before["split"])
    assert (row["question"], row["answers"], row["review"]) == ("Who painted the Lilies?", ["Édouard Manet"], "mend")
    assert row["steps"][-1]["answer"] == "Édouard Manet"  # as its question has it
    assert decided(file, 0)["review"] == "mend"


def test_spellings_of_one_item_stay_together(file: Path) -> None:
    assert answer_lines(ROWS[1]) == ["Inn | En", "Ilz"]
    assert decided(file, 1, answers=["Inn | En", "Donau"])["answers"] == [["Inn", "En"], "Donau"]


@pytest.mark.parametrize(
    ("words", "told"), [({"question": " "}, "own.jsonl, line 1"), ({"id": "other"}, "no question 'other' any more")]
)
def test_what_would_be_no_question_is_refused_and_nothing_is_written(file: Path, words: dict, told: str) -> None:
    before = file.read_bytes()
    row = raw_rows(file)[0]
    given = {"id": row["id"], "question": row["question"], "answers": answer_lines(row)} | words
    with pytest.raises(QuestreeError, match=told):
        decide(file, decision="keep", **given)
    assert file.read_bytes() == before


def test_new_rows_do_not_undo_a_review(file: Path, tmp_path: Path) -> None:
    reviewed, other = decided(file, 0, "drop"), raw_rows(file)[1]
    fresh = [{**other, "question": "Written anew?"}, {"id": "new", "question": "New?", "answers": []}]
    assert with_reviewed(fresh, file, tmp_path / "absent.jsonl") == [*fresh, reviewed]
    assert with_reviewed([{**reviewed, "review": "keep"}], file) == [reviewed]
