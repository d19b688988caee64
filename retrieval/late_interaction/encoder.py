"""What encoders of late interaction share (ColBERT: Khattab and Zaharia, SIGIR 2020, section 3)."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..encoders import TextEncoder, batches

if TYPE_CHECKING:
    import torch

_WINDOW = 4096
"""Passages that are sorted by length together; also how many are in memory at once."""
TOKENS_A_BATCH = {"cpu": 3_000, "cuda": 60_000}


class Encoder(TextEncoder):
    """A model of one unit vector for each token of a query or a passage. Made by ``checkpoint.load_encoder``."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Return the number of dimensions of an embedding."""

    @property
    @abstractmethod
    def window(self) -> int:
        """Return how many tokens of a passage are read, markers included."""

    @property
    @abstractmethod
    def longest_query(self) -> int:
        """Return how many tokens of a query the model can read, markers included."""

    @abstractmethod
    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, on the CPU, without padding.

        A query is read to its end, up to `longest_query`.
        """

    def passages(
        self, texts: Iterable[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """Yield one (tokens, dim) float16 tensor for each text, in their order, on the CPU.

        Args:
            texts: any number; a few thousand are in memory at a time.
            progress: told how many more are done, after each batch.
        """
        remaining = iter(texts)
        while window := list(islice(remaining, _WINDOW)):
            yield from self._window(window, progress)

    def _vectors(self, texts: Sequence[str]) -> Iterator[torch.Tensor]:
        """Return the mean token embedding of each text."""
        return (matrix.float().mean(0) for matrix in self.passages(texts))

    def _window(self, texts: list[str], progress: Callable[[int], None]) -> list[torch.Tensor]:
        """Return the embeddings of texts.

        In float32 on a CPU texts of one length share a batch, so that nothing is padding. bfloat16 gains more by larger
        batches than the little padding costs between texts of nearly one length: 1.3 times as many passages.
        """
        with self._lock:
            tokens = self._tokens(texts)
        lengths = tokens["attention_mask"].sum(1).tolist()
        self.filled += sum(length >= self.window for length in lengths)
        done: dict[int, torch.Tensor] = {}
        with self._autocast():  # one for all batches: it keeps the weights that it casts
            device = self._model.device.type
            alike = device == "cpu" and self.precision == "float32"
            for batch in batches(lengths, TOKENS_A_BATCH[device], alike=alike):
                longest = lengths[batch[-1]]
                some = {name: of_all[batch, :longest] for name, of_all in tokens.items()}
                done.update(zip(batch, self._encoded(some), strict=True))
                progress(len(batch))
        return [done[position] for position in range(len(texts))]

    def _encoded(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        import torch

        with self._lock, torch.no_grad():  # in inference mode autocast would cast the weights for every batch
            embedded, kept = self._embedded(tokens)
        return [matrix[rows].half() for matrix, rows in zip(embedded.cpu(), kept.cpu(), strict=True)]

    @abstractmethod
    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """Return the (texts, tokens) input of the model by name, the ``attention_mask`` among them, padded behind."""

    @abstractmethod
    def _embedded(self, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (texts, tokens, dim), and (texts, tokens): which of them count."""

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self.precision == "bfloat16":
            return torch.autocast(self._model.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()
