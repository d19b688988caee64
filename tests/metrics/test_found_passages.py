"""Passages found or kept against the gold passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from questree.metrics import normalise_title, passage_fingerprint, passage_names, precision, recall_at_k, s_precision
from questree.retrieval import Passage

titles = st.lists(st.sampled_from("abcdef"), max_size=6)


def test_titles_are_compared_lightly_normalised() -> None:
    assert normalise_title("AT&amp;T_Stadium ") == normalise_title("at&t stadium")
    assert normalise_title("Mercury (planet)") != normalise_title("Mercury")


def test_a_passage_is_known_by_its_id_or_by_its_letters_and_digits() -> None:
    gold = Passage(id="m-7", title="Oak_Island", text="The treasure hunt began in 1795 .")
    same = Passage(id="elsewhere", title="Oak Island", text="The treasure  hunt began in 1795.")
    other = Passage(id="m-8", title="Oak Island", text="Oak Island lies in Nova Scotia.")
    fingerprint = passage_fingerprint(gold.title, gold.text)
    assert passage_names([same, other], [fingerprint])[0] == fingerprint
    assert passage_names([other], [fingerprint]) != [fingerprint]
    assert passage_names([gold, other], ["m-8"])[1] == "m-8"


def test_recall_counts_only_the_first_k_passages() -> None:
    found = ["x", "a", "a", "b"]
    assert recall_at_k(found, ["a", "b"], 1) == 0
    assert recall_at_k(found, ["a", "b"], 3) == 0.5
    assert recall_at_k(found, ["a", "b"], 4) == 1
    assert recall_at_k(found, ["a", "b"]) == 1
    with pytest.raises(ValueError, match="not 0"):
        recall_at_k(found, ["a"], 0)


def test_precision_counts_passages_and_s_precision_wants_the_gold_set() -> None:
    assert precision(["a", "a", "x", "b"], ["a", "b"]) == 0.75
    assert precision([], ["a"]) == 0
    assert s_precision(["b", "a", "a"], ["a", "b"])
    assert not s_precision(["a"], ["a", "b"])
    assert not s_precision(["a", "b", "c"], ["a", "b"])


def test_without_gold_passages_there_is_nothing_to_score() -> None:
    assert recall_at_k(["a"], [], 5) is None
    assert precision(["a"], []) is None
    assert s_precision([], []) is None


@given(titles, titles.filter(bool))
def test_s_precision_is_full_recall_with_full_precision(found: list[str], gold: list[str]) -> None:
    full = recall_at_k(found, gold, 6) == 1 and precision(found, gold) == 1
    assert s_precision(found, gold) == full


@given(titles, titles.filter(bool), st.integers(1, 6))
def test_recall_never_falls_with_k(found: list[str], gold: list[str], k: int) -> None:
    assert recall_at_k(found, gold, k) <= recall_at_k(found, gold, k + 1)
