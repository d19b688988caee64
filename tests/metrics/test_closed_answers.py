"""Yes or no, and FEVER's labels, as models spell them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from questree.metrics import label_accuracy, read_label, read_yes_no, yes_no_accuracy

SAID = {
    "yes": ["Yes", "True", "Yes, there is no evidence against it", "It is not false.", "It is entirely true."],
    "no": [
        *("**No.**", "No he did not", "The answer is no because it sank", "It could not be. So the answer is: no"),
        *("It is not true.", "No, it is not true.", "That isn’t true.", "It cannot be true"),
        "No, that is not quite true",
    ],
    None: [
        *("Yes and no.", "yes or no", "No, I mean yes.", "No-one knows", "I do not know", "There is no such thing"),
        *("It is not a true story", "The claim is not entirely true", "It is partly true.", "unknown", ""),
    ],
}


def by_text(texts: dict[Any, list[str]]) -> list[tuple[str, Any]]:
    """Each text with what it says."""
    return [(text, said) for said, those in texts.items() for text in those]


@pytest.mark.parametrize(("text", "said"), by_text(SAID))
def test_read_yes_no(text: str, said: str | None) -> None:
    assert read_yes_no(text) == said


def test_an_ambiguous_answer_is_wrong_whatever_the_gold() -> None:
    assert not yes_no_accuracy("yes and no", ["yes"])
    assert not yes_no_accuracy("yes and no", ["no"])
    assert yes_no_accuracy("False", ["no"])


LABELS = {
    "SUPPORTS": [
        *("SUPPORTS", "The claim is supported by the passage.", "supports, not refuted"),
        *("SUPPORTS: there is no evidence against it", "The claim is supported by [1]; nothing refutes it"),
    ],
    "REFUTES": ["Refuted: it is false", "REFUTES, since no evidence supports it", "completely false"],
    "NOT ENOUGH INFO": [
        *("NOT_ENOUGH_INFO", "It neither supports nor refutes it", "Insufficient evidence"),
        *("There is not enough information to support or refute the claim.", "There isn't enough information"),
        "There is not enough information to determine whether the claim is true.",
        *("NOT ENOUGH INFO: the passage does not support the claim", "NOT ENOUGH INFO: nothing supports it"),
        *("There is no information that supports the claim", "The claim cannot be verified."),
        "The evidence is insufficient",
    ],
    None: [
        *("partially true", "only partly supported", "The claim is not entirely true", "not supported"),
        *("It's not true", "SUPPORTS or REFUTES", "I cannot say"),
    ],
}


@pytest.mark.parametrize(("text", "label"), by_text(LABELS))
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
