"""What the model is trained on, token by token, and the objective against DPR's formulas written out."""

import math
import random
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoTokenizer

from questree.optimize.readers import ReadingExample
from questree.optimize.readers.batches import Batch, batch_of, epoch_of, reader_loss, token_spans
from questree.retrieval import Passage
from questree.retrieval.span_model import ReaderInput, reader_input


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return AutoTokenizer.from_pretrained(encoder)


def spans(tokenizer, text, *answers, window=64, longest=10, regex=False):
    example = ReadingExample("1", "where is it?", answers, Passage(id="1", title="amber", text=text), (), regex)
    given = reader_input(tokenizer, [(example.question, example.passage)], window)
    found = token_spans(given, 0, example, longest)
    offsets = given.offsets[0].tolist()
    return [text[offsets[first][0] : offsets[last][1]] for first, last in found]


def test_an_answer_is_marked_wherever_it_stands_whole(tokenizer):
    text = "The Basin of cedar, by the basin, is no basins at the cedar wood."
    assert spans(tokenizer, text, "basin") == ["Basin", "basin"]
    assert spans(tokenizer, text, "cedar wood", "cedar") == ["cedar", "cedar", "cedar wood"]
    assert spans(tokenizer, text, "b.s.n", regex=True) == ["Basin", "basin"]
    assert spans(tokenizer, text, "amber") == []  # it is the title


def test_an_answer_that_the_cut_took_or_that_is_too_long_is_none(tokenizer):
    text = "the sand of the wood lies by the basin"
    assert spans(tokenizer, text, "basin", window=18) == ["basin"]
    assert spans(tokenizer, text, "basin", window=17) == []
    assert spans(tokenizer, text, "lies by the basin", longest=4) == ["lies by the basin"]
    assert spans(tokenizer, text, "lies by the basin", longest=3) == []


def test_an_epoch_has_every_question_once_in_an_order_of_its_own(examples):
    first, again, second = (epoch_of(examples, 3, seed=1, epoch=epoch) for epoch in (0, 0, 1))
    assert first == again != second
    assert sorted(place for batch in first for place in batch) == list(range(8))
    assert max(map(len, first)) == 3


def test_a_group_is_the_right_passage_and_its_negatives(examples, tokenizer):
    chosen = {"negatives": 2, "window": 64, "longest_answer": 10}
    batch = batch_of(examples, [0, 1], tokenizer, **chosen, rng=random.Random(0))
    assert batch.group == 3
    shown = [tokenizer.decode(ids, skip_special_tokens=True) for ids in batch.given.tokens["input_ids"]]
    assert ["basin" in text for text in shown[:3]] == [True, False, False]
    assert ["where is the cedar" in text for text in shown] == [False] * 3 + [True] * 3
    assert all(len(found) == 1 for found in batch.spans)


def test_the_objective_is_that_of_dpr():
    draw = torch.Generator().manual_seed(0)
    start, end, relevance = (torch.randn(*size, generator=draw) for size in ((4, 5), (4, 5), (4,)))
    in_text = torch.tensor([[0, 0, 1, 1, 1]] * 4).bool()
    batch = Batch(ReaderInput({}, in_text, torch.zeros(4, 5, 2)), [[(2, 2), (3, 4)], [(4, 4)]], group=2)
    logits = SimpleNamespace(start_logits=start, end_logits=end, relevance_logits=relevance)

    def softmax(values, place):
        return math.exp(values[place]) / sum(math.exp(value) for value in values)

    def likely(row, first, last):
        begins, ends = start[row, 2:].tolist(), end[row, 2:].tolist()
        return softmax(begins, first - 2) * softmax(ends, last - 2)

    of_spans = -math.log(likely(0, 2, 2) + likely(0, 3, 4)) - math.log(likely(2, 4, 4))
    of_choice = -sum(math.log(softmax(relevance.view(2, 2)[row].tolist(), 0)) for row in range(2))
    assert float(reader_loss(logits, batch)) == pytest.approx((of_spans + of_choice) / 2, rel=1e-5)

    signed = zip(relevance.tolist(), (-1, 1, -1, 1), strict=True)
    absolute = sum(math.log(1 + math.exp(sign * value)) for value, sign in signed) / 4
    expected = (of_spans + of_choice) / 2 + 0.5 * absolute
    assert float(reader_loss(logits, batch, absolute=0.5)) == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_an_answer_in_the_window_still_teaches_relevance():
    logits = SimpleNamespace(
        start_logits=torch.zeros(2, 3, requires_grad=True),
        end_logits=torch.zeros(2, 3),
        relevance_logits=torch.tensor([0.0, 1.0], requires_grad=True),
    )
    batch = Batch(ReaderInput({}, torch.ones(2, 3).bool(), torch.zeros(2, 3, 2)), [[]], group=2)
    loss = reader_loss(logits, batch)
    assert float(loss.detach()) == pytest.approx(math.log(1 + math.e))
    loss.backward()
    assert logits.relevance_logits.grad is not None
