"""Passages of documents are encoded in groups that depend on their texts alone, and are known again."""

import numpy as np
import pytest

from questree.retrieval import Passage, build_index, load_index
from questree.retrieval.indexes import known_rows
from questree.retrieval.indexes.known_rows import KnownRows, groups


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(known_rows, "_GROUP", 4)


def texts(*numbers):
    return [f"text {number}" for number in numbers]


def encode(some):
    """Rows that tell with which texts a text was encoded: their number."""
    return [1 for _ in some], 0, np.full((len(some), 1), len(some), dtype="f2")


def test_groups_are_those_of_the_texts_wherever_they_stand():
    whole = [*groups(texts(*range(100)))]
    assert [text for group in whole for text in group] == texts(*range(100))
    assert len(whole) > 10
    shifted = [*groups(texts(*range(1000, 1003), *range(100)))]
    assert shifted[-len(whole) + 1 :] == whole[1:]


def test_what_is_encoded_does_not_depend_on_what_stands_before():
    lengths, filled, rows = KnownRows(None, "", "").rows(encode, texts(*range(100)))
    assert (lengths, filled, rows.dtype) == ([1] * 100, 0, np.float16)
    assert rows[:, 0].tolist() == [len(group) for group in groups(texts(*range(100))) for _ in group]


@pytest.mark.parametrize("known", [True, False])
def test_rows_are_taken_of_the_same_encoder_only(tmp_path, sentence_folder, known):
    passages = [Passage(id=str(number), text=f"amber basin {number}") for number in range(9)]
    out = build_index(passages, tmp_path / "index", kind="dense", checkpoint=sentence_folder)
    (record,) = out.rglob("*.chunk.json")
    identity, asked = load_index(out).encoder.identity if known else "other", []
    rows = KnownRows(record.parents[1], record.parent.name, identity)
    rows.rows(lambda some: asked.append(some) or encode(some), [one.shown() for one in passages])
    assert (asked == []) == known
