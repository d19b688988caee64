"""Texts as single vectors: Contriever, E5, or any sentence encoder that transformers loads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import CheckpointError, QuestreeError
from .encoders import Checkpoint, TextEncoder, batches, cpu_precision, find_checkpoint, load_model, minilm_folder
from .sentence_usage import Usage

if TYPE_CHECKING:
    import torch

_TOKENS_A_BATCH = {"cpu": 4_000, "cuda": 120_000}
_QUERIES_TOGETHER = 64


def find_sentence_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """Return the encoder of a name; it is on this machine then.

    Args:
        name: None or ``embedded`` for all-MiniLM-L6-v2 as its package holds it; a folder; or a name on the hub, such
            as ``facebook/contriever``, which is downloaded once.

    Raises:
        CheckpointError: if it is not found, incomplete, or not installed.
    """
    return find_checkpoint(name, minilm_folder)


class SentenceEncoder(TextEncoder):
    """A model of one vector for each query and each passage. Made by ``load``.

    Attributes:
        usage: how texts become vectors.
    """

    def __init__(self, checkpoint: Checkpoint, usage: Usage, precision: str, model: Any, tokenizer: Any) -> None:
        super().__init__(checkpoint, precision, model)
        self.usage = usage
        self._tokenizer = tokenizer

    @classmethod
    def load(
        cls, checkpoint: Checkpoint, usage: Usage, precision: str = "auto", device: str | None = None
    ) -> SentenceEncoder:
        """Load an encoder.

        Args:
            checkpoint: of ``find_sentence_checkpoint``.
            usage: of ``find_usage``.
            precision: ``float16`` (GPU), ``bfloat16``, ``float32``. ``auto`` is float16 on a GPU; on a CPU bfloat16
                if it computes with that, else float32. On a CPU, queries are float32.
            device: by default the GPU if there is one.

        Raises:
            CheckpointError: if transformers cannot load it.
            QuestreeError: if there is no such precision on this device.
        """
        model, tokenizer, chosen = load_model("AutoModel", checkpoint.folder, device=device)
        if tokenizer.pad_token_id is None:
            raise CheckpointError(f"{checkpoint.folder} cannot be used as a sentence encoder: it has no padding token.")
        computed = _precision(precision, chosen)
        return cls(checkpoint, usage, computed, model.half() if computed == "float16" else model, tokenizer)

    @property
    def dim(self) -> int:
        """Return the number of dimensions of a vector."""
        return int(self._model.config.hidden_size)

    @property
    def window(self) -> int:
        """Return how many tokens of a text are read, markers included."""
        return self.usage.window

    @property
    def longest(self) -> int:
        """Return the most tokens of a text that the model can read; the window, if the model has no such bound."""
        return int(getattr(self._model.config, "max_position_embeddings", None) or self.window)

    @property
    def identity(self) -> str:
        """Return all that a passage's vector depends on beside its text."""
        return f"{self.checkpoint.fingerprint} {self.precision} {self.usage}"

    def queries(self, queries: Sequence[str]) -> torch.Tensor:
        """Return (queries, dim) float32, on the CPU; a query is read up to the encoder's window."""
        texts = [self.usage.query_prefix + query for query in queries]
        with self._lock:
            lengths = [len(ids) for ids in self._tokenizer(texts, verbose=False)["input_ids"]] if texts else []
        self._warn_of_length(lengths, self.window)
        return self._embedded(texts)

    def _embedded(self, texts: list[str]) -> torch.Tensor:
        """Return (texts, dim) float32, on the CPU."""
        import torch

        starts = range(0, len(texts), _QUERIES_TOGETHER)
        encoded = [self._encoded(self._ids(texts[start : start + _QUERIES_TOGETHER])) for start in starts]
        return torch.cat(encoded) if encoded else torch.empty(0, self.dim)

    def passages(
        self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """Yield one (1, dim) float16 tensor for each text, in their order, on the CPU.

        Args:
            texts: held in memory together with their vectors.
            progress: told how many more are done, after each batch.
        """
        ids = self._ids([self.usage.passage_prefix + text for text in texts])
        self.filled += sum(len(one) >= self.window for one in ids)
        done: dict[int, torch.Tensor] = {}
        with self._autocast():  # one for all batches: it keeps the weights that it casts
            for batch in batches([len(one) for one in ids], _TOKENS_A_BATCH[self._model.device.type]):
                vectors = self._encoded([ids[position] for position in batch]).half()
                done.update(zip(batch, vectors.split(1), strict=True))
                progress(len(batch))
        yield from (done[position] for position in range(len(texts)))

    def _vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the vectors of texts as queries."""
        return self._embedded([self.usage.query_prefix + text for text in texts])

    def _ids(self, texts: list[str]) -> list[list[int]]:
        with self._lock:  # a fast tokenizer's truncation is state of its own
            ids: list[list[int]] = self._tokenizer(texts, truncation=True, max_length=self.window)["input_ids"]
        return ids

    def _encoded(self, ids: list[list[int]]) -> torch.Tensor:
        """Return (texts, dim) float32, on the CPU."""
        import torch

        longest = max(map(len, ids))
        padded = torch.tensor([one + [self._tokenizer.pad_token_id] * (longest - len(one)) for one in ids])
        read = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in ids])
        with self._lock, torch.no_grad():  # in inference mode autocast would cast the weights for every batch
            device = self._model.device
            tokens = self._model(input_ids=padded.to(device), attention_mask=read.to(device)).last_hidden_state
        return self._pooled(tokens.float(), read.to(device).unsqueeze(-1)).cpu()

    def _pooled(self, tokens: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        import torch

        vectors = tokens[:, 0] if self.usage.pooling == "cls" else (tokens * read).sum(1) / read.sum(1)
        return torch.nn.functional.normalize(vectors, dim=1) if self.usage.normalised else vectors

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self.precision == "bfloat16":
            return torch.autocast(self._model.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()


def _precision(asked: str, device: str) -> str:
    on_gpu = not device.startswith("cpu")
    if asked == "auto":
        return "float16" if on_gpu else cpu_precision()
    if asked in ("float32", "bfloat16", *(["float16"] if on_gpu else [])):
        return asked
    raise QuestreeError(
        f"A sentence encoder does not compute in {asked} on {device}. There are: auto, float32, bfloat16, and on a "
        "GPU float16."
    )
