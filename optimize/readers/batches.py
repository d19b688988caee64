"""Batches of training, and their loss: questions of about one length, each with its passage and some negatives."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ...common.patterns import spans as spans_of
from ...retrieval import Passage
from ...retrieval.span_model import ReaderInput, reader_input
from .examples import ReadingExample, draw_negatives

_SORTED_TOGETHER = 16  # batches: short passages stand together, and yet each epoch has another order


@dataclass(frozen=True)
class Batch:
    """Questions with their passages: each group of rows is the right passage, then the negatives.

    Attributes:
        spans: for each group, first and last token of each place where an answer stands in the right passage;
            empty if the passage was cut before all of them.
    """

    given: ReaderInput
    spans: list[list[tuple[int, int]]]
    group: int


def epoch_of(examples: Sequence[ReadingExample], batch_size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Return the order of an epoch, as positions in batches; the same arguments give the same, so it can be resumed."""
    rng = random.Random(f"{seed}:{epoch}")
    order = list(range(len(examples)))
    rng.shuffle(order)
    batches: list[list[int]] = []
    for first in range(0, len(order), batch_size * _SORTED_TOGETHER):
        some = sorted(order[first : first + batch_size * _SORTED_TOGETHER], key=lambda n: len(examples[n].passage.text))
        batches += [some[start : start + batch_size] for start in range(0, len(some), batch_size)]
    rng.shuffle(batches)
    return batches


def batch_of(
    examples: Sequence[ReadingExample],
    positions: Sequence[int],
    tokenizer: Any,
    *,
    negatives: int,
    window: int,
    longest_answer: int,
    rng: random.Random,
) -> Batch:
    """Return the batch of these examples with newly drawn negatives, for all as many as the one with fewest has."""
    some = [examples[position] for position in positions]
    wrong = [draw_negatives(example, negatives, examples, rng) for example in some]
    fewest = min(map(len, wrong))
    pairs: list[tuple[str, Passage]] = []
    for example, passages in zip(some, wrong, strict=True):
        pairs += [(example.question, passage) for passage in (example.passage, *passages[:fewest])]
    given = reader_input(tokenizer, pairs, window)
    spans = [token_spans(given, place * (1 + fewest), one, longest_answer) for place, one in enumerate(some)]
    return Batch(given, spans, 1 + fewest)


def token_spans(given: ReaderInput, row: int, example: ReadingExample, longest: int) -> list[tuple[int, int]]:
    """Return first and last token of every place where an answer stands whole in what is read of the passage."""
    begins, ends = given.offsets[row].T.tolist()
    inside = [token for token, of_text in enumerate(given.in_text[row].tolist()) if of_text]
    spans = []
    for first_character, end_character in character_spans(example):
        first = next((token for token in inside if ends[token] > first_character), None)
        last = next((token for token in inside if ends[token] >= end_character), None)
        if first is not None and last is not None and last - first < longest and begins[first] < end_character:
            spans.append((first, last))
    return sorted(set(spans))


def character_spans(example: ReadingExample) -> list[tuple[int, int]]:
    """Return where an answer stands in the passage's text, as whole words, in any case."""
    patterns = example.answers if example.answers_are_regex else map(re.escape, example.answers)
    found = [spans_of(rf"(?i)(?<!\w)(?:{pattern})(?!\w)", example.passage.text) for pattern in patterns]
    return [(start, end) for each in found for start, end in each if end > start]


def reader_loss(logits: Any, batch: Batch, *, absolute: float = 0.0) -> torch.Tensor:
    """Return the loss of a batch: of all places of the answer together, and of choosing the right passage; a scalar.

    Start and end are each a softmax over the tokens of the right passage's text (DPR's: over the whole input). The
    choice is a softmax over the passages of a question.

    Args:
        logits: ``start_logits`` and ``end_logits`` (passages, tokens), ``relevance_logits`` (passages,).
        absolute: weight of a further term, which DPR lacks: the binary cross-entropy of each passage's relevance.
            The softmax compares the logits of one question only, and a threshold compares those of all questions.
    """
    relevance = logits.relevance_logits.float().view(-1, batch.group)
    right = torch.zeros(len(relevance), dtype=torch.long, device=relevance.device)
    loss = cross_entropy(relevance, right) + _span_loss(logits, batch)
    if absolute:
        truth = torch.zeros_like(relevance)
        truth[:, 0] = 1
        loss = loss + absolute * binary_cross_entropy_with_logits(relevance, truth)
    return loss


def _span_loss(logits: Any, batch: Batch) -> torch.Tensor:
    outside = ~batch.given.in_text[:: batch.group].to(logits.start_logits.device)
    starts, ends = (
        logits_of[:: batch.group].float().masked_fill(outside, float("-inf")).log_softmax(-1)
        for logits_of in (logits.start_logits, logits.end_logits)
    )
    of_each = [
        -torch.logsumexp(torch.stack([starts[row, first] + ends[row, last] for first, last in spans]), 0)
        for row, spans in enumerate(batch.spans)
        if spans
    ]
    # zero, but with a gradient, if the passages were cut before every answer of the batch
    return torch.stack(of_each).mean() if of_each else logits.start_logits.sum() * 0.0
