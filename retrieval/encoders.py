"""Models that turn texts into vectors: what encoders of late interaction and of sentences share."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ..common.errors import CheckpointError, QuestreeError
from .base import Kept, batched
from .checkpoints import Checkpoint, check_weights

logger = logging.getLogger(__name__)

_WINDOW = 4096
"""Texts that are sorted by length together; also how many are in memory at once."""
TOKENS_A_BATCH = {"cpu": 3_000, "cuda": 60_000}


class TextEncoder(ABC):
    """A model that turns texts into vectors; safe in several threads.

    Attributes:
        precision: in which passages are computed; queries are float32.
        dim: numbers of a vector.
        window: tokens of a passage that are read, markers included.
        filled: how many passages, so far, fill the window; what stands beyond it was not read.
    """

    row_type = "f2"
    dim: int
    window: int

    def __init__(self, checkpoint: Checkpoint, precision: str, model: Any) -> None:
        self.checkpoint, self.precision = checkpoint, precision
        self.filled = 0
        self._warned = False
        self._model = model
        self._lock = threading.Lock()
        self._known: Kept[str, torch.Tensor] = Kept()

    def passages(
        self, texts: Iterable[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """Yield one (rows, dim) float16 tensor for each text, in their order, on the CPU.

        Args:
            texts: any number; a few thousand are in memory at a time.
            progress: told how many more are done, after each batch.
        """
        for some in batched(texts, _WINDOW):
            yield from self._encoded(some, progress)

    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """Return how alike texts are, by the cosine of a vector of each: a row for each text, in it each other text."""
        if not texts or not others:
            return [[] for _ in texts]
        vectors = self._known.all_of(  # a program compares the same few texts again and again
            [*texts, *others], self._vectors, lambda text, vector: len(text) + vector.nbytes
        )
        unit = torch.nn.functional.normalize(torch.stack(vectors), dim=1)
        rows: list[list[float]] = (unit[: len(texts)] @ unit[len(texts) :].T).tolist()
        return rows

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Iterable[torch.Tensor]:
        """Return one (dim,) vector for each text, to compare texts by."""

    @abstractmethod
    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """Return the model's input for passages, each (texts, tokens), padded on the right; ``attention_mask`` too."""

    @abstractmethod
    def _embedded(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return the (rows, dim) of each text of a batch, on the CPU."""

    def _encoded(self, texts: list[str], progress: Callable[[int], None]) -> list[torch.Tensor]:
        """Return the embeddings of passages.

        In float32 on a CPU texts of one length share a batch, so that nothing is padding. bfloat16 gains more by larger
        batches than the little padding costs between texts of nearly one length: 1.3 times as many passages.
        """
        with self._lock:  # truncation and padding are state of the tokenizer
            tokens = self._tokens(texts)
        lengths = tokens["attention_mask"].sum(1).tolist()
        self.filled += sum(length >= self.window for length in lengths)
        done: dict[int, torch.Tensor] = {}
        device = self._model.device.type
        alike = device == "cpu" and self.precision == "float32"
        with self._autocast():  # one for all batches: it keeps the weights that it casts
            for batch in batches(lengths, TOKENS_A_BATCH[device], alike=alike):
                some = {name: of_all[batch, : lengths[batch[-1]]] for name, of_all in tokens.items()}
                with self._lock, torch.no_grad():  # in inference mode autocast would cast the weights for every batch
                    done.update(zip(batch, (rows.half() for rows in self._embedded(some)), strict=True))
                progress(len(batch))
        return [done[position] for position in range(len(texts))]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self._model.device.type, dtype=getattr(torch, self.precision))

    def _warn_of_length(self, tokens: Iterable[int], limit: int) -> None:
        """Warn if a query has more tokens than the encoder reads; once for each encoder."""
        longest = max(tokens, default=0)
        if self._warned or longest <= limit:
            return
        self._warned = True
        logger.warning(
            "A query of %d tokens is longer than the %d that the encoder reads; what stands beyond is not searched "
            "for. Said once; there may be more.", longest, limit,
        )  # fmt: skip


def batches(lengths: Sequence[int], budget: int, *, alike: bool = False) -> Iterator[list[int]]:
    """Yield positions of texts, the shortest first, as many together as fit the budget.

    Args:
        lengths: of the texts, in tokens.
        budget: how many tokens a batch may have with its padding.
        alike: put only texts of one length together, so that nothing is padding.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        full = (len(batch) + 1) * lengths[position] > budget
        if batch and (full or (alike and lengths[position] != lengths[batch[0]])):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def precision_of(wanted: str, device: str, on_gpu: str) -> str:
    """Return in which precision passages are computed on a device.

    Args:
        wanted: ``float32``, ``bfloat16``, on a GPU ``float16``; or ``auto``: on a CPU bfloat16 if it computes with
            that, else float32, for emulated bfloat16 is several times slower.
        device: ``cpu`` or ``cuda``.
        on_gpu: what ``auto`` means there.
    """
    if wanted == "auto" and device == "cpu":
        supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        return "bfloat16" if supported is not None and supported() else "float32"
    found = on_gpu if wanted == "auto" else wanted
    if found not in ("float32", "bfloat16", *(["float16"] if device != "cpu" else [])):
        raise QuestreeError(
            f"An encoder does not compute in {wanted} on {device}. There are: auto, float32, bfloat16, and on a GPU "
            "float16."
        )
    return found


def load_model(model_class: str, name: str | Path) -> tuple[Any, Any]:
    """Return a transformers model for inference, on the GPU if there is one, and its fast tokenizer.

    Args:
        model_class: of transformers, such as ``DPRReader``.
        name: a folder, or a name on the hub (then it is downloaded once).
    """
    import transformers

    found = {"local_files_only": Path(name).expanduser().is_dir(), "trust_remote_code": False}
    try:
        check_weights(Path(name).expanduser())
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(name), **found)
            model, weights = getattr(transformers, model_class).from_pretrained(
                str(name), output_loading_info=True, **found
            )
    except Exception as problem:  # transformers and the hub raise many kinds; each means that it cannot be loaded
        reason = (str(problem).strip().splitlines() or ["no reason given"])[0]
        raise CheckpointError(
            f"{name} cannot be loaded as a {model_class} ({type(problem).__name__}: {reason}). "
            "Name a local folder, or a model on the hub that can be reached."
        ) from problem
    # transformers draws what is missing at random and goes on; only a pooler, which nothing here uses, may be missing
    if missing := sorted(key for key in weights["missing_keys"] if "pooler" not in key):
        raise CheckpointError(f"{name} is no {model_class}: it has no weights for {missing[0]}. Name another model.")
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), tokenizer


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and reports of transformers and sentence-transformers from the screen while the block runs."""
    from transformers.utils import logging as of_transformers

    verbosity, bars = of_transformers.get_verbosity(), of_transformers.is_progress_bar_enabled()
    of_sentences = logging.getLogger("sentence_transformers")
    level = of_sentences.level
    of_transformers.set_verbosity_error()
    of_transformers.disable_progress_bar()
    of_sentences.setLevel(logging.ERROR)
    try:
        yield
    finally:
        of_transformers.set_verbosity(verbosity)
        of_sentences.setLevel(level)
        if bars:
            of_transformers.enable_progress_bar()


def weights_hash(model: Any) -> str:
    """Return 16 hex digits of a model's weights."""
    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def folder_hash(name: str | Path, model: Any) -> str:
    """Return the hash of weights that were loaded from a folder, which keeps its name when they are trained further.

    Those of a name on the hub have none: it stands for the same weights.
    """
    return weights_hash(model) if Path(name).expanduser().is_dir() else ""
