"""ColBERT's two encoders (Khattab and Zaharia, SIGIR 2020, section 3) through colbert-ai."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...common.errors import CheckpointError
from .checkpoint import Checkpoint
from .compat import colbert_ready, without_extensions

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

Precision = Literal["auto", "float32", "bfloat16"]
_WINDOW = 4096
"""Passages that are sorted by length together; also how many are in memory at once."""
_MEANS_KEPT = 20_000
_TOKENS_A_BATCH = {"cpu": 3_000, "cuda": 60_000}


class Encoder:
    """Turns queries and passages into one unit vector a token. Made by ``load``; safe in several threads."""

    def __init__(self, checkpoint: Checkpoint, model: Any, precision: Literal["float32", "bfloat16"]) -> None:
        self.checkpoint = checkpoint
        self.precision = precision
        self.filled = 0
        """Passages, so far, that fill the window; what stands beyond it was not read."""
        self._model = model
        self._lock = threading.Lock()
        self._means: dict[str, torch.Tensor] = {}

    @classmethod
    def load(cls, checkpoint: Checkpoint, precision: Precision = "auto") -> Encoder:
        """Load the model (seconds: colbert-ai's import), on the GPU where there is one.

        Args:
            checkpoint: of ``find_checkpoint``.
            precision: for passages on a CPU; queries are float32. ``auto`` is bfloat16 where the CPU computes
                with it, float32 elsewhere (where bfloat16 is several times slower). The ranking is the same
                but for near ties: top-10 overlap .993, same first passage for 99 of 100 queries, 160 passages.
                There is no int8: torch's dynamic quantization gave embeddings with a cosine of only .91 to .92
                to these, and on a CPU with AVX2 alone no more passages a second.

        Raises:
            CheckpointError: it is not a model that colbert-ai can load.
        """
        import torch

        path = str(checkpoint.folder)
        with colbert_ready(), without_extensions():
            from colbert.infra import ColBERTConfig
            from colbert.modeling.checkpoint import Checkpoint as ColbertCheckpoint
            from colbert.utils.amp import MixedPrecisionManager

            try:
                _check_architecture(path)
                config = ColBERTConfig(checkpoint=path, model_name=path)
                model = ColbertCheckpoint(path, colbert_config=config, verbose=0)
            except Exception as problem:  # whatever a foreign folder makes colbert-ai and transformers raise
                raise CheckpointError(f"{path} cannot be loaded as a ColBERT checkpoint: {problem}") from problem
            if torch.cuda.is_available():
                model = model.cuda()
            else:
                model.amp_manager = MixedPrecisionManager(False)
        return cls(checkpoint, model, _chosen(precision))

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return int(self._model.colbert_config.dim)

    @property
    def window(self) -> int:
        """Tokens of a passage that are read, markers included."""
        return int(self._model.colbert_config.doc_maxlen)

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """One (tokens, dim) float32 tensor for each query, on the CPU; padding left out."""
        import torch

        with self._lock, torch.inference_mode():
            ids, mask = self._model.query_tokenizer.tensorize(list(queries))
            read = (ids != self._model.pad_token).any(0)
            embedded = self._model.query(ids[:, read], mask[:, read], to_cpu=True).float()
        return [matrix[matrix.any(-1)] for matrix in embedded]

    def passages(
        self, texts: Iterable[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """One (tokens, dim) float16 tensor for each text, in their order, on the CPU.

        Args:
            texts: any number; a few thousand are in memory at a time.
            progress: told how many more are done, after each batch.
        """
        remaining = iter(texts)
        while window := list(islice(remaining, _WINDOW)):
            yield from self._window(window, progress)

    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """How alike in meaning: the cosine of mean token embeddings; a row for each text, a column for each other."""
        import torch

        means = self._mean_embeddings([*texts, *others])
        unit = torch.nn.functional.normalize(torch.stack(means), dim=1)
        rows: list[list[float]] = (unit[: len(texts)] @ unit[len(texts) :].T).tolist()
        return rows

    def _mean_embeddings(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """One (dim,) vector for each text; a program compares the same few passages again and again."""
        if len(self._means) > _MEANS_KEPT:
            self._means.clear()
        known = dict(self._means)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known |= {text: matrix.float().mean(0) for text, matrix in zip(new, self.passages(new), strict=True)}
        self._means.update(known)
        return [known[text] for text in texts]

    def _window(self, texts: Sequence[str], progress: Callable[[int], None]) -> list[torch.Tensor]:
        """Texts of one length in tokens share a batch, so that on a CPU nothing of it is padding."""
        with self._lock:
            ids, attended = self._model.doc_tokenizer.tensorize(list(texts))
        lengths = attended.sum(1).tolist()
        self.filled += sum(length >= self.window for length in lengths)
        done: dict[int, torch.Tensor] = {}
        with self._autocast():  # one for all batches: it keeps the weights that it casts
            for batch in self._batches(lengths):
                longest = lengths[batch[-1]]
                done.update(zip(batch, self._encoded(ids[batch, :longest], attended[batch, :longest]), strict=True))
                progress(len(batch))
        return [done[position] for position in range(len(texts))]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Positions, the shortest first: of equal lengths on a CPU, where a batch of two is as fast as a large one."""
        device = self._model.device.type
        batch: list[int] = []
        for position in sorted(range(len(lengths)), key=lengths.__getitem__):
            full = (len(batch) + 1) * lengths[position] > _TOKENS_A_BATCH[device]
            if batch and (full or (device == "cpu" and lengths[position] != lengths[batch[0]])):
                yield batch
                batch = []
            batch.append(position)
        if batch:
            yield batch

    def _encoded(self, ids: torch.Tensor, attended: torch.Tensor) -> list[torch.Tensor]:
        import torch

        with self._lock, torch.no_grad():  # in inference mode autocast would cast the weights for every batch
            embedded, kept = self._model.doc(ids, attended, keep_dims="return_mask", to_cpu=True)
        kept = kept.squeeze(-1).cpu()
        return [matrix[rows].half() for matrix, rows in zip(embedded, kept, strict=True)]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self.precision == "bfloat16" and self._model.device.type == "cpu":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()


def _chosen(precision: Precision) -> Literal["float32", "bfloat16"]:
    import torch

    if precision != "auto":
        return precision
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return "bfloat16" if supported is not None and supported() else "float32"


def _check_architecture(path: str) -> None:
    """Refuse code of the folder's own, which colbert-ai would run: it trusts every folder.

    Refuse also what it would answer with another model: it catches every failure of its class factory.
    """
    for file in Path(path).glob("*.json"):
        if b"auto_map" in file.read_bytes():
            raise ValueError(f"{file.name} names code of its own (auto_map), which is not run")
    from colbert.modeling import hf_colbert
    from transformers import AutoConfig

    AutoConfig.from_pretrained(path, trust_remote_code=False)
    hf_colbert.class_factory(path)
