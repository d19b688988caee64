"""The encoder's batches: what is padded, and what is told of them."""

from __future__ import annotations

import random

import pytest

from questree.retrieval.late_interaction.checkpoint import find_checkpoint, load_encoder

WORDS = ["amber", "basin", "delta", "fjord", "grove", "harbor", "island", "kelp"]


@pytest.fixture
def texts():
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=length)) for length in (5, 2, 9, 5, 2, 30, 9, 5)]


@pytest.fixture
def encoder(tiny_checkpoint):
    return load_encoder(find_checkpoint(tiny_checkpoint), precision="float32")


@pytest.mark.parametrize(("precision", "batches"), [("float32", 4), ("bfloat16", 2)])
def test_on_a_cpu_nothing_is_padding_but_in_bfloat16(tiny_checkpoint, texts, monkeypatch, precision, batches):
    from questree.retrieval.late_interaction import encoder as module

    encoder = load_encoder(find_checkpoint(tiny_checkpoint), precision)
    if encoder._model.device.type != "cpu":
        pytest.skip("there is a GPU, where some padding is cheaper than small batches")
    masks = []
    doc = encoder._model.doc
    monkeypatch.setattr(encoder._model, "doc", lambda ids, mask, **more: masks.append(mask) or doc(ids, mask, **more))
    monkeypatch.setitem(module.TOKENS_A_BATCH, "cpu", 90)
    list(encoder.passages(texts))
    assert len(masks) == batches  # lengths: 2, 5, 9 and 30 words
    assert all(bool(mask.all()) for mask in masks) == (precision == "float32")


def test_progress_adds_up_to_all_texts(encoder, texts):
    done = []
    list(encoder.passages(texts, done.append))
    assert sum(done) == len(texts)


def test_bfloat16_ranks_as_float32_and_casts_each_weight_once(encoder, tiny_checkpoint, texts, monkeypatch):
    import torch
    from torch.profiler import ProfilerActivity, profile

    from questree.retrieval.late_interaction import encoder as module

    monkeypatch.setitem(module.TOKENS_A_BATCH, "cpu", 40)
    if encoder._model.device.type != "cpu":
        pytest.skip("on a GPU half precision is colbert-ai's own")
    half = load_encoder(find_checkpoint(tiny_checkpoint), precision="bfloat16")
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
    assert len(weights) == matrices  # not again for each batch


def test_a_long_query_is_read_to_its_end(encoder):
    import torch

    recollection = " ".join(["amber basin delta fjord"] * 20)  # longer than the query_maxlen of the checkpoint
    first, second = encoder.queries([f"{recollection} where is kelp", f"{recollection} where is grove"])
    assert first.shape == second.shape
    assert not torch.equal(first, second)
    short = encoder.queries(["where is kelp"])[0]
    assert len(short) < len(first)


def test_a_short_query_is_embedded_alike_beside_a_long_one(encoder):
    import torch

    alone = encoder.queries(["where is kelp"])[0]
    beside = encoder.queries(["amber " * 80, "where is kelp"])[1]
    assert torch.allclose(alone, beside, atol=1e-6)


def test_a_query_beyond_the_encoders_limit_is_warned_of_once(encoder, caplog):
    too_long = "amber " * (encoder.longest_query + 10)
    assert len(encoder.queries([too_long])[0]) <= encoder.longest_query
    encoder.queries([too_long])
    assert caplog.text.count("is longer than the") == 1


def test_a_query_is_counted_while_no_other_thread_truncates(encoder, monkeypatch):
    """colbert-ai's truncation is state of the tokenizer: a count beside it was sometimes that of the cut query."""
    tokenizer, held = encoder._model.query_tokenizer.tok, []
    call = type(tokenizer).__call__
    monkeypatch.setattr(
        type(tokenizer),
        "__call__",
        lambda self, *given, **more: held.append(encoder._lock.locked()) or call(self, *given, **more),
    )
    encoder.queries(["where is kelp"])
    assert held
    assert all(held)
