"""What retrievers and encoders remember: it saves work, and its size has a bound."""

import pytest
import torch

from questree.retrieval import BM25Retriever, base
from questree.retrieval.base import Kept
from questree.retrieval.encoders import TextEncoder


def test_values_are_kept_until_they_are_too_large_together(monkeypatch):
    monkeypatch.setattr(base, "_MOST_KEPT", 10_000)
    kept, made = Kept[str, int](), list[str]()

    def of(key: str, size: int = 300) -> int:
        return kept.all_of([key, key], lambda keys: made.extend(keys) or map(int, keys), lambda *_: size)[1]

    assert [of(str(number)) for number in [*range(20), 19, 20, 19]] == [*range(20), 19, 20, 19]
    assert made[19:] == ["19", "20", "19"]  # with the twentieth all others were dropped
    assert (of("21", 20_000), len(kept)) == (21, 2)


@pytest.mark.parametrize(("query", "k"), [("amber {}", 100), ("{} " + "x" * 20_000, 1)])
def test_what_a_retriever_remembers_has_a_bounded_size(passages, monkeypatch, query, k):
    monkeypatch.setattr(base, "_MOST_KEPT", 200_000)
    index = BM25Retriever.from_passages(passages)
    for number in range(60):
        index(query.format(number), k=k)
    assert len(index._known) < 20


def test_what_an_encoder_remembers_has_a_bounded_size(monkeypatch):
    encoded = []

    class Letters(TextEncoder):
        _tokens = _embedded = None

        def _vectors(self, texts):
            encoded.extend(text[:2] for text in texts)
            return [torch.tensor([float(len(text)), 1.0]) for text in texts]

    monkeypatch.setattr(base, "_MOST_KEPT", 200_000)
    encoder = Letters(None, "float32", None)
    assert encoder.similarity(["a", "bb"], ["a"])[0][0] == pytest.approx(1)
    encoder.similarity(["bb"], ["cc", "cc"])
    assert encoded == ["a", "bb", "cc"]
    for number in range(60):
        encoder.similarity([f"{number} " + "x" * 20_000], ["a"])
    assert len(encoder._known) < 20
