"""What retrievers and encoders remember: it saves work, and its size has a bound."""

import pytest

from questree.retrieval import BM25Retriever, kept_results
from questree.retrieval.encoders import TextEncoder
from questree.retrieval.kept_results import Kept


def test_values_are_kept_until_they_are_too_large_together(monkeypatch):
    monkeypatch.setattr(kept_results, "_MOST", 10_000)
    kept: Kept[str, int] = Kept()
    for number in range(20):
        kept.keep(f"{number}", number, 300)
        kept.keep(f"{number}", -1, 300)
    assert kept.get("19") == 19
    assert kept.get("20") is None
    assert len(kept) == 20
    kept.keep("20", 20, 300)
    assert (len(kept), kept.get("19"), kept.get("20")) == (1, None, 20)
    kept.keep("all", 1, 20_000)
    assert kept.get("all") is None


@pytest.mark.parametrize(("query", "k"), [("amber {}", 100), ("{} " + "x" * 20_000, 1)])
def test_what_a_retriever_remembers_has_a_bounded_size(passages, monkeypatch, query, k):
    monkeypatch.setattr(kept_results, "_MOST", 200_000)
    index = BM25Retriever.from_passages(passages)
    for number in range(60):
        index(query.format(number), k=k)
    assert len(index._known) < 20


def test_what_an_encoder_remembers_has_a_bounded_size(monkeypatch):
    import torch

    encoded = []

    class Letters(TextEncoder):
        _tokens = _embedded = None

        def _vectors(self, texts):
            encoded.extend(text[:2] for text in texts)
            return [torch.tensor([float(len(text)), 1.0]) for text in texts]

    monkeypatch.setattr(kept_results, "_MOST", 200_000)
    encoder = Letters(None, "float32", None)
    assert encoder.similarity(["a", "bb"], ["a"])[0][0] == pytest.approx(1)
    encoder.similarity(["bb"], ["cc", "cc"])
    assert encoded == ["a", "bb", "cc"]
    for number in range(60):
        encoder.similarity([f"{number} " + "x" * 20_000], ["a"])
    assert len(encoder._known) < 20
