"""The reader of Dense Passage Retrieval (Karpukhin et al., EMNLP 2020, section 6.1)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..common.errors import CheckpointError
from .base import batched, check_query
from .calibrated import ReaderManifest, stored
from .contracts import Span
from .encoders import folder_hash, load_model
from .passage import Passage
from .span_model import best_span, reader_input, reader_window

DEFAULT_MODEL = "facebook/dpr-reader-multiset-base"
DEFAULT_THRESHOLD = 1.5
"""SearChain's theta for DPR's published reader (Xu et al., WWW 2024, section 4.1)."""

_TOGETHER = 32


class DPRReader:
    """A reader of spans, whose score is the relevance logit. Made by ``load``; thread-safe.

    Args:
        name: for people.
        threshold: the score above which its spans are trusted.
        model: transformers' ``DPRReader``: it gives start, end and relevance logits.
        tokenizer: a fast one.
        window: how many tokens it reads.
        longest_answer: the most tokens of a span.
        fingerprint: of the weights in a folder; empty for a name on the hub.
    """

    def __init__(
        self,
        name: str,
        threshold: float,
        model: Any,
        tokenizer: Any,
        *,
        window: int = 350,
        longest_answer: int = 10,
        fingerprint: str = "",
    ) -> None:
        self.name, self.threshold, self.fingerprint = name, threshold, fingerprint
        self._model, self._tokenizer, self._lock = model, tokenizer, threading.Lock()
        self._window, self._longest = reader_window(model.config, window), longest_answer

    @classmethod
    def load(cls, model: str | Path = DEFAULT_MODEL, *, threshold: float | None = None) -> DPRReader:
        """Load a reader by hub name or folder, on the GPU if there is one.

        Args:
            model: a folder of ``questree calibrate-reader``, or a reader in DPR's published layout.
            threshold: by default the one stored with the reader, else 1.5.

        Raises:
            CheckpointError: if it cannot be found, fetched or loaded.
        """
        manifest = stored(model) or ReaderManifest(kind="dpr")
        name = manifest.model or model
        if manifest.kind == "lm":
            raise CheckpointError(f"{model} holds the threshold of an LM, not a model that could be loaded.")
        loaded, tokenizer = load_model("DPRReader", name)
        own = DEFAULT_THRESHOLD if manifest.threshold is None else manifest.threshold
        return cls(
            str(model),
            own if threshold is None else threshold,
            loaded,
            tokenizer,
            window=manifest.window,
            longest_answer=manifest.longest_answer,
            fingerprint=folder_hash(name, loaded),
        )

    def __call__(self, query: str, passage: Passage) -> Span:
        """Return the best span of the passage's text; it is empty if there is none.

        Raises:
            QueryError: if the query is empty.
        """
        return self.read_many([(query, passage)])[0]

    def read_many(self, pairs: Sequence[tuple[str, Passage]]) -> list[Span]:
        """Return one span for each query and its passage, as single calls give (but for rounding).

        Raises:
            QueryError: if a query is empty.
        """
        checked = [(check_query(query), passage) for query, passage in pairs]
        by_length = sorted(range(len(checked)), key=lambda n: len(checked[n][0]) + len(checked[n][1].text))
        spans: dict[int, Span] = {}
        for places in batched(by_length, _TOGETHER):
            spans.update(zip(places, self._read([checked[place] for place in places]), strict=True))
        return [spans[place] for place in range(len(checked))]

    def _read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Span]:
        with self._lock, torch.inference_mode():
            given = reader_input(self._tokenizer, pairs, self._window)
            output = self._model(**given.tokens.to(self._model.device))
        outside = ~given.in_text
        starts = output.start_logits.float().cpu().masked_fill(outside, float("-inf"))
        ends = output.end_logits.float().cpu().masked_fill(outside, float("-inf"))
        spans = []
        for row, (_, passage) in enumerate(pairs):
            found = best_span(starts[row], ends[row], self._longest)
            first, last = (
                (0, 0) if found is None else (given.offsets[row][found[0]][0], given.offsets[row][found[1]][1])
            )
            spans.append(
                Span(text=passage.text[int(first) : int(last)].strip(), score=float(output.relevance_logits[row]))
            )
        return spans
