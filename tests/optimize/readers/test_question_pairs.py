"""Pairs of questions in Quora's form, and a check that is held against them."""

import pytest

from questree.common.errors import QuestreeError
from questree.optimize.readers import best_theta
from questree.optimize.readers.readings import QuestionPair, compare_all, read_pairs

PAIRS = [("Who made it?", "Who, by chance, made it?", 1), ('What is a "pit"?', "Where is it?", 0)]


def tsv(folder, rows=PAIRS):
    lines = ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"]
    lines += [f'{n}\t1\t2\t"{a.replace(chr(34), chr(34) * 2)}"\t{b}\t{same}' for n, (a, b, same) in enumerate(rows)]
    file = folder / "pairs.tsv"
    file.write_text("\n".join(lines))
    return file


def jsonl(folder):
    file = folder / "pairs.jsonl"
    file.write_text(
        '{"question1": "Who made it?", "question2": "Who, by chance, made it?", "is_duplicate": true}\n\n'
        '{"question1": "What is a \\"pit\\"?", "question2": "Where is it?", "is_duplicate": 0}\n'
    )
    return file


@pytest.mark.parametrize("form", [tsv, jsonl])
def test_both_forms_give_the_pairs(tmp_path, form):
    assert read_pairs(form(tmp_path)) == [QuestionPair(a, b, bool(same)) for a, b, same in PAIRS]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([*PAIRS, ("", "Who?", 1)], "line 4: a pair needs question1"),
        ([*PAIRS, ("Who?", "Who?", 2)], "line 4: a pair needs"),
        (PAIRS[:1], "1 pairs of one kind"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, rows, said):
    with pytest.raises(QuestreeError, match=said):
        read_pairs(tsv(tmp_path, rows))
    with pytest.raises(QuestreeError, match="cannot be read"):
        read_pairs(tmp_path / "nosuch.tsv")


def test_a_quotation_mark_that_is_not_closed_joins_no_lines(tmp_path):
    (file := tmp_path / "pairs.tsv").write_text(
        'question1\tquestion2\tis_duplicate\n"What is\tWhere?\t0\nHe said "yes"\tWho?\t1\nA?\tB?\t0\n'
    )
    with pytest.raises(QuestreeError, match="up to line 3, an open quotation mark joins columns"):
        read_pairs(file)


def overlap(query, seen):
    """As alike as the words that two questions share."""
    words = set(query.lower().split())
    return [len(words & set(other.lower().split())) / len(words) for other in seen]


def test_the_threshold_lies_between_the_kinds(tmp_path):
    readings = compare_all(overlap, read_pairs(tsv(tmp_path)))
    assert [reading.answers for reading in readings] == [True, False]
    best = best_theta(readings)
    assert readings[1].score < best.theta < readings[0].score
    assert best.f1 == 1


def test_halves_go_by_the_first_question_and_are_both_used():
    halves = [QuestionPair(f"Which {n}?", "x", True).held_out for n in range(100)]
    assert 30 < sum(halves) < 70
    assert QuestionPair("Which  1?", "y", False).held_out == QuestionPair("which 1?", "x", True).held_out
