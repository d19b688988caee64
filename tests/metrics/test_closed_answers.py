"""Yes or no, and FEVER's labels, as models spell them."""

import json
import time
from pathlib import Path

import pytest

from questree.metrics import label_accuracy, read_label, read_yes_no, yes_no_accuracy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes", "yes"),
        ("**No.**", "no"),
        ("True", "yes"),
        ("Yes, there is no evidence against it", "yes"),
        ("No he did not", "no"),
        ("The answer is no because it sank", "no"),
        ("It could not be. So the answer is: no", "no"),
        ("Yes and no.", None),
        ("yes or no", None),
        ("No, I mean yes.", None),
        ("No-one knows", None),
        ("I do not know", None),
        ("It is not true.", "no"),
        ("No, it is not true.", "no"),
        ("That isn’t true.", "no"),
        ("It is not false.", "yes"),
        ("It cannot be true", "no"),
        ("It is not a true story", None),
        ("There is no such thing", None),
        ("The claim is not entirely true", None),
        ("It is partly true.", None),
        ("No, that is not quite true", "no"),
        ("It is entirely true.", "yes"),
        ("unknown", None),
        ("", None),
    ],
)
def test_read_yes_no(text: str, said: str | None) -> None:
    assert read_yes_no(text) == said


def test_an_ambiguous_answer_is_wrong_whatever_the_gold() -> None:
    assert not yes_no_accuracy("yes and no", ["yes"])
    assert not yes_no_accuracy("yes and no", ["no"])
    assert yes_no_accuracy("False", ["no"])


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("SUPPORTS", "SUPPORTS"),
        ("The claim is supported by the passage.", "SUPPORTS"),
        ("supports, not refuted", "SUPPORTS"),
        ("Refuted: it is false", "REFUTES"),
        ("NOT_ENOUGH_INFO", "NOT ENOUGH INFO"),
        ("There is not enough information to support or refute the claim.", "NOT ENOUGH INFO"),
        ("It neither supports nor refutes it", "NOT ENOUGH INFO"),
        ("Insufficient evidence", "NOT ENOUGH INFO"),
        ("NOT ENOUGH INFO: the passage does not support the claim", "NOT ENOUGH INFO"),
        ("There is not enough information to determine whether the claim is true.", "NOT ENOUGH INFO"),
        ("There isn't enough information", "NOT ENOUGH INFO"),
        ("There is no information that supports the claim", "NOT ENOUGH INFO"),
        ("The claim cannot be verified.", "NOT ENOUGH INFO"),
        ("The evidence is insufficient", "NOT ENOUGH INFO"),
        ("NOT ENOUGH INFO: nothing supports it", "NOT ENOUGH INFO"),
        ("SUPPORTS: there is no evidence against it", "SUPPORTS"),
        ("REFUTES, since no evidence supports it", "REFUTES"),
        ("The claim is supported by [1]; nothing refutes it", "SUPPORTS"),
        ("partially true", None),
        ("only partly supported", None),
        ("The claim is not entirely true", None),
        ("completely false", "REFUTES"),
        ("not supported", None),
        ("It's not true", None),
        ("SUPPORTS or REFUTES", None),
        ("I cannot say", None),
    ],
)
def test_read_label(text: str, label: str | None) -> None:
    assert read_label(text) == label


@pytest.mark.parametrize("loop", ["none of ", "not true ", "no evidence ", "not enough info to "])
def test_a_reply_that_repeats_itself_is_read_at_once(loop: str) -> None:
    began = time.process_time()
    read_label(loop * 8_000)
    assert time.process_time() - began < 5  # by the square of its length it would be minutes


def test_label_accuracy_reads_both_sides() -> None:
    assert label_accuracy("supported", ["SUPPORTS"])
    assert not label_accuracy("supported", ["REFUTES"])
    assert not label_accuracy("who knows", ["who knows"])


@pytest.mark.parametrize(("name", "right"), [("strategyqa", yes_no_accuracy), ("fever", label_accuracy)])
def test_real_gold_answers_are_read(shared_data: Path, name: str, right) -> None:
    for line in (shared_data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        golds = json.loads(line)["answers"]
        assert right(golds[0], golds)
        assert right(f"{golds[0]}.".capitalize(), golds)
