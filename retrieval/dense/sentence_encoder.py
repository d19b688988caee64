"""Texts as single vectors: Contriever, E5, or any sentence encoder that transformers loads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...common.errors import CheckpointError, QuestreeError
from ..hub import load_model
from ..late_interaction.checkpoint import EMBEDDED, Checkpoint, find_checkpoint, minilm_folder
from .sentence_usage import Usage

if TYPE_CHECKING:
    import torch

Precision = Literal["float16", "bfloat16", "float32"]
_TOKENS_A_BATCH = {"cpu": 4_000, "cuda": 120_000}
_QUERIES_TOGETHER = 64
_VECTORS_KEPT = 20_000


def find_sentence_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """The encoder of that name, on this machine when the call returns.

    Args:
        name: None or ``embedded`` for all-MiniLM-L6-v2 as its package holds it; a folder; or a name on the hub, such
            as ``facebook/contriever``, which is downloaded once.

    Raises:
        CheckpointError: not found, incomplete, or not installed.
    """
    if name is None or str(name) == EMBEDDED:
        return replace(find_checkpoint(minilm_folder()), name=EMBEDDED)
    return find_checkpoint(name)


class SentenceEncoder:
    """Turns queries and passages into one vector each. Made by ``load``; safe in several threads."""

    def __init__(self, checkpoint: Checkpoint, usage: Usage, precision: Precision, model: Any, tokenizer: Any) -> None:
        self.checkpoint = checkpoint
        self.usage = usage
        self.precision = precision
        self.filled = 0
        """Passages, so far, that fill the window; what stands beyond it was not read."""
        self._model, self._tokenizer = model, tokenizer
        self._lock = threading.Lock()
        self._known: dict[str, torch.Tensor] = {}

    @classmethod
    def load(
        cls, checkpoint: Checkpoint, usage: Usage, precision: str = "auto", device: str | None = None
    ) -> SentenceEncoder:
        """Load the model.

        Args:
            checkpoint: of ``find_sentence_checkpoint``.
            usage: of ``find_usage``.
            precision: ``float16`` (GPU), ``bfloat16``, ``float32``. ``auto`` is float16 on a GPU; on a CPU bfloat16
                where it computes with that, else float32. On a CPU, queries are float32.
            device: by default the GPU where there is one.

        Raises:
            CheckpointError: transformers cannot load it.
            QuestreeError: there is no such precision on this device.
        """
        model, tokenizer, chosen = load_model("AutoModel", checkpoint.folder, device=device)
        if tokenizer.pad_token_id is None:
            raise CheckpointError(f"{checkpoint.folder} cannot be used as a sentence encoder: it has no padding token.")
        computed = _precision(precision, chosen)
        return cls(checkpoint, usage, computed, model.half() if computed == "float16" else model, tokenizer)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self._model.config.hidden_size)

    @property
    def identity(self) -> str:
        """All that a passage's vector depends on but its text."""
        return f"{self.checkpoint.fingerprint} {self.precision} {self.usage}"

    def queries(self, queries: Sequence[str]) -> torch.Tensor:
        """(queries, dim) float32, on the CPU."""
        import torch

        texts = [self.usage.query_prefix + query for query in queries]
        starts = range(0, len(texts), _QUERIES_TOGETHER)
        batches = [self._encoded(self._ids(texts[start : start + _QUERIES_TOGETHER])) for start in starts]
        return torch.cat(batches) if batches else torch.empty(0, self.dim)

    def passages(
        self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """One (1, dim) float16 tensor for each text, in their order, on the CPU; texts of one length share a batch.

        Args:
            texts: held in memory together with their vectors.
            progress: told how many more are done, after each batch.
        """
        ids = self._ids([self.usage.passage_prefix + text for text in texts])
        self.filled += sum(len(one) >= self.usage.window for one in ids)
        done: dict[int, torch.Tensor] = {}
        with self._autocast():  # one for all batches: it keeps the weights that it casts
            for batch in _batches([len(one) for one in ids], _TOKENS_A_BATCH[self._model.device.type]):
                vectors = self._encoded([ids[position] for position in batch]).half()
                done.update(zip(batch, vectors.split(1), strict=True))
                progress(len(batch))
        yield from (done[position] for position in range(len(texts)))

    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """How alike in meaning: the cosine of their vectors as queries; a row a text, a column an other."""
        import torch

        if len(self._known) > _VECTORS_KEPT:
            self._known.clear()
        known = dict(self._known)
        new = [text for text in dict.fromkeys([*texts, *others]) if text not in known]
        known |= dict(zip(new, self.queries(new), strict=True))
        self._known.update(known)
        if not texts or not others:
            return [[] for _ in texts]
        unit = torch.nn.functional.normalize(torch.stack([known[text] for text in [*texts, *others]]), dim=1)
        rows: list[list[float]] = (unit[: len(texts)] @ unit[len(texts) :].T).tolist()
        return rows

    def _ids(self, texts: list[str]) -> list[list[int]]:
        with self._lock:  # a fast tokenizer's truncation is state of its own
            ids: list[list[int]] = self._tokenizer(texts, truncation=True, max_length=self.usage.window)["input_ids"]
        return ids

    def _encoded(self, ids: list[list[int]]) -> torch.Tensor:
        """(texts, dim) float32, on the CPU."""
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


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Positions of texts, the shortest first, as many together as stay under so many tokens with their padding."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[position] > budget:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _precision(asked: str, device: str) -> Precision:
    import torch

    on_gpu = not device.startswith("cpu")
    if asked == "auto" and on_gpu:
        return "float16"
    if asked == "auto":
        supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        return "bfloat16" if supported is not None and supported() else "float32"
    known: dict[str, Precision] = {"float32": "float32", "bfloat16": "bfloat16"}
    if on_gpu:
        known["float16"] = "float16"
    if asked in known:
        return known[asked]
    raise QuestreeError(
        f"A sentence encoder does not compute in {asked} on {device}. There are: auto, float32, bfloat16, and on a "
        "GPU float16."
    )
