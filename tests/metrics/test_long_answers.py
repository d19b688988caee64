"""ROUGE-L of answers of several sentences."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from questree.metrics import rouge_l


def test_rouge_l_on_lins_own_case() -> None:
    # Lin (2004), section 3: the longest common subsequence of the first has three words of four, of the second two
    gold = ["police killed the gunman"]
    assert rouge_l("police kill the gunman", gold) == 1.0  # the stemmer makes killed and kill one
    assert rouge_l("police ended the gunman", gold) == pytest.approx(0.75)
    assert rouge_l("the gunman ended police", gold) == pytest.approx(0.5)


def test_marks_cost_nothing_and_the_best_gold_counts() -> None:
    assert rouge_l("police ended the gunman [1][2].", ["police ended the gunman"]) == 1.0
    assert rouge_l("blue", ["red", "blue"]) == 1.0
    assert rouge_l("blue", ["red"]) == 0.0


def test_real_long_answers_against_themselves_and_each_other(shared_data: Path) -> None:
    lines = (shared_data / "eli5.jsonl").read_text(encoding="utf-8").splitlines()[:10]
    golds = [json.loads(line)["answers"] for line in lines]
    for gold, other in pairwise(golds):
        assert rouge_l(gold[0], gold) == pytest.approx(1.0)
        assert rouge_l(gold[0], other) < 0.4
