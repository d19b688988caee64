"""The encoder's batches: what is padded, and what is told of them."""

from __future__ import annotations

import random

import pytest

from questree.retrieval.late_interaction.checkpoint import find_checkpoint

WORDS = ["amber", "basin", "delta", "fjord", "grove", "harbor", "island", "kelp"]


@pytest.fixture
def texts():
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=length)) for length in (5, 2, 9, 5, 2, 30, 9, 5)]


@pytest.fixture
def encoder(tiny_checkpoint):
    from questree.retrieval.late_interaction.encoder import Encoder

    return Encoder.load(find_checkpoint(tiny_checkpoint), precision="float32")


def test_on_a_cpu_nothing_that_is_encoded_is_padding(encoder, texts, monkeypatch):
    if encoder._model.device.type != "cpu":
        pytest.skip("there is a GPU, where some padding is cheaper than small batches")
    masks = []
    doc = encoder._model.doc
    monkeypatch.setattr(encoder._model, "doc", lambda ids, mask, **more: masks.append(mask) or doc(ids, mask, **more))
    list(encoder.passages(texts))
    assert len(masks) == 4  # lengths: 2, 5, 9 and 30 words
    assert all(bool(mask.all()) for mask in masks)


def test_progress_adds_up_to_all_texts(encoder, texts):
    done = []
    list(encoder.passages(texts, done.append))
    assert sum(done) == len(texts)


def test_bfloat16_ranks_as_float32_and_casts_each_weight_once(encoder, tiny_checkpoint, texts):
    import torch
    from torch.profiler import ProfilerActivity, profile

    from questree.retrieval.late_interaction.encoder import Encoder

    if encoder._model.device.type != "cpu":
        pytest.skip("on a GPU half precision is colbert-ai's own")
    half = Encoder.load(find_checkpoint(tiny_checkpoint), precision="bfloat16")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        found = list(half.passages(texts))
    for one, other in zip(found, encoder.passages(texts), strict=True):
        assert (one.float() * other.float()).sum(1).min() > 0.99
        assert not torch.equal(one, other)
    assert all(map(torch.equal, half.queries(texts), encoder.queries(texts)))  # queries are not rounded
    weights = [
        event for event in profiled.events() if event.name == "aten::_to_copy" and event.input_shapes[0] == [32, 32]
    ]
    matrices = sum(list(weight.shape) == [32, 32] for weight in half._model.parameters())
    assert len(weights) == matrices  # not again for each of the four batches
