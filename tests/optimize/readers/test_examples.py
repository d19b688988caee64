"""Questions with passages, from each form of file; and the passages that do not answer them."""

import json
import random

import pytest
from fakes import GivingRetriever

from questree.common.errors import QuestreeError
from questree.optimize.readers import mine_negatives, reading_examples, spread_out
from questree.optimize.readers.examples import draw_negatives
from questree.retrieval import Passage

ROW = {"question": "Where is the amber?", "answers": ["the basin"]}
GOLD = "The amber lies by the basin."


def jsonl(folder, rows):
    file = folder / "own.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def own(number=0, **more):
    paragraphs = [
        {"title": "A", "text": "No amber here."},
        {"title": "B", "text": "A word on the basin alone."},
        {"title": "C", "text": "It supports, but elsewhere.", "is_supporting": True},
        {"title": "D", "text": GOLD, "is_supporting": True},
    ]
    return {"id": f"q{number}", **ROW, "split": "train", "paragraphs": paragraphs, **more}


def squad(folder):
    asked = {"id": "q0", "question": ROW["question"], "answers": [{"text": "the basin", "answer_start": 19}] * 2}
    file = folder / "train-v1.1.json"
    unanswered = {**asked, "id": "q1", "answers": []}
    article = {"title": "The_amber", "paragraphs": [{"context": GOLD, "qas": [asked, unanswered]}]}
    file.write_text(json.dumps({"version": "1.1", "data": [article]}))
    return file


def dpr(folder):
    hard = [{"title": "A", "text": "No amber here."}, {"title": "B", "text": "A word on the basin alone."}]
    rows = [
        {**ROW, "positive_ctxs": [{"title": "D", "text": GOLD}], "hard_negative_ctxs": hard, "negative_ctxs": []},
        {**ROW, "positive_ctxs": [], "hard_negative_ctxs": hard, "negative_ctxs": []},
    ]
    file = folder / "biencoder-nq-train.json"
    file.write_text(json.dumps(rows))
    return file


@pytest.mark.parametrize("form", [lambda folder: jsonl(folder, [own()]), squad, dpr], ids=["own", "squad", "dpr"])
def test_every_form_gives_the_question_with_the_passage_that_answers_it(tmp_path, form):
    (example,) = reading_examples(form(tmp_path), "train,dev,test")
    assert (example.question, example.answers) == (ROW["question"], ("the basin",))
    assert example.passage.text == GOLD
    assert all("basin" not in negative.text for negative in example.negatives)


def test_a_question_without_an_answer_shows_no_passage_that_answers_it(tmp_path):
    (example,) = reading_examples(jsonl(tmp_path, [own(), own(1, question="Who?", answers=[])]), "train")
    assert example.id == "q0"


def test_negatives_that_come_with_a_question_are_kept_unless_they_hold_the_answer(tmp_path):
    for file in (jsonl(tmp_path, [own()]), dpr(tmp_path)):
        (example,) = reading_examples(file, "train,dev,test")
        assert [passage.title for passage in example.negatives] == ["A"]


def test_several_sources_and_splits_are_put_together(tmp_path):
    rows = [own(0), own(1, split="dev", question="Which?"), own(2, split="test", question="Who?")]
    file = jsonl(tmp_path, rows)
    assert {e.id for e in reading_examples(f"{file},{squad(tmp_path)}", "train,dev,test")} == {"q0", "q1", "q2"}
    assert [e.id for e in reading_examples(file, "dev")] == ["q1"]


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "bad.json").write_text('{"data": [{"paragraphs": [{}]}]}')
    with pytest.raises(QuestreeError, match=r"bad.json is neither in SQuAD 1.1's form nor in DPR's"):
        reading_examples(tmp_path / "bad.json")
    with pytest.raises(QuestreeError, match="no question in nosuch that comes with"):
        reading_examples(squad(tmp_path), "nosuch")
    with pytest.raises(QuestreeError, match="supporting passage"):
        reading_examples(jsonl(tmp_path, [own(paragraphs=[])]))


def ranked(*texts):
    return GivingRetriever(Passage(id=str(n), text=text) for n, text in enumerate(texts))


def test_mined_negatives_are_the_highest_that_hold_no_answer(examples):
    amber = examples[0]
    retriever = ranked(amber.passage.text, "By the basin.", "kelp", "cedar", "grove", "sand")
    (found, *_) = mine_negatives([amber] * 40, retriever, keep=2)
    assert [passage.text for passage in found.negatives] == ["kelp", "cedar"]
    (other,) = mine_negatives([found], ranked("hill"), keep=2)
    assert [passage.text for passage in other.negatives] == ["hill", "kelp", "cedar"]


def test_where_negatives_lack_other_questions_passages_are_drawn(examples):
    (amber,) = mine_negatives(examples[:1], ranked("kelp"))
    found = draw_negatives(amber, 3, examples, random.Random(0))
    assert len({passage.text for passage in found}) == 3
    assert found[0].text == "kelp"
    assert not any(amber.may_be_answered_by(passage) for passage in found)
    assert draw_negatives(amber, 3, [amber], random.Random(0)) == found[:1]


def test_a_spread_takes_from_all_over():
    assert spread_out(list(range(10)), 4) == [0, 2, 5, 7]
    assert spread_out([1, 2], 4) == [1, 2]
