"""The reader of Dense Passage Retrieval (Karpukhin et al., EMNLP 2020, section 6.1)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from .base import check_query
from .contracts import Span
from .hub import load_model
from .passage import Passage
from .spans import best_span

DEFAULT_MODEL = "facebook/dpr-reader-multiset-base"
_LONGEST_ANSWER = 10
_WINDOW = 350


class DPRReader:
    """Reads the answer's span from a passage; the score is the relevance logit. Made by ``load``.

    Safe in several threads. SearChain (Xu et al., WWW 2024) trusts a span whose score is above 1.5.
    """

    def __init__(self, name: str, threshold: float, model: Any, tokenizer: Any) -> None:
        self.name = name
        self.threshold = threshold
        self._model = model
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    @classmethod
    def load(cls, model: str | Path = DEFAULT_MODEL, *, threshold: float = 1.5, device: str | None = None) -> DPRReader:
        """Load a reader by hub name or folder, on the GPU where there is one.

        Raises:
            CheckpointError: it cannot be found, fetched or loaded.
        """
        loaded, tokenizer, _ = load_model("DPRReader", model, device=device)
        return cls(str(model), threshold, loaded, tokenizer)

    def __call__(self, query: str, passage: Passage) -> Span:
        """The best span of the passage's text, ten tokens at most; empty where there is none.

        Raises:
            QueryError: the query is empty.
        """
        import torch

        text = passage.text
        prompt = f"{check_query(query)} {self._tokenizer.sep_token} {passage.title}"
        with self._lock, torch.inference_mode():
            encoded = self._tokenizer(
                prompt,
                text,
                truncation="longest_first",
                max_length=min(_WINDOW, self._model.config.max_position_embeddings),
                return_offsets_mapping=True,
                return_tensors="pt",
                return_token_type_ids=False,
            )
            in_text = torch.tensor([part == 1 for part in encoded.sequence_ids(0)])
            offsets = encoded.pop("offset_mapping")[0]
            output = self._model(**encoded.to(self._model.device))
        start, end = (logits[0].float().cpu() for logits in (output.start_logits, output.end_logits))
        nowhere = torch.full_like(start, float("-inf"))
        found = best_span(torch.where(in_text, start, nowhere), torch.where(in_text, end, nowhere), _LONGEST_ANSWER)
        score = float(output.relevance_logits[0])
        if found is None:
            return Span(text="", score=score)
        return Span(text=text[int(offsets[found[0]][0]) : int(offsets[found[1]][1])].strip(), score=score)
