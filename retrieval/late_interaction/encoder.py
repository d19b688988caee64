"""Encoders of late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020, section 3), through sentence-transformers.

It loads checkpoints of colbert-ai (ColBERTv2, answerai-colbert-small, the embedded one), of PyLate (GTE-ModernColBERT)
and its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import CheckpointError
from ..encoders import (
    Checkpoint,
    TextEncoder,
    batches,
    check_weights,
    cpu_precision,
    modules_of,
    quiet,
    read_settings,
)

if TYPE_CHECKING:
    import torch

_WINDOW = 4096
"""Passages that are sorted by length together; also how many are in memory at once."""
_QUERIES_TOGETHER = 32
TOKENS_A_BATCH = {"cpu": 3_000, "cuda": 60_000}
_LONGEST = 8192
"""Tokens of a text that are read where neither the checkpoint nor its tokenizer says how many."""


class Encoder(TextEncoder):
    """A model of one unit vector for each token of a query or a passage. Made by ``load``.

    Attributes:
        window: tokens of a passage that are read, markers included.
        longest_query: the largest window that the checkpoint states, for passages or queries.
    """

    def __init__(self, checkpoint: Checkpoint, precision: str, model: Any) -> None:
        super().__init__(checkpoint, precision, model)
        reads, tokenizer = model[0], model.tokenizer
        tokenizer.padding_side = "right"  # batches are cut there
        if tokenizer.mask_token_id == tokenizer.pad_token_id:  # the embedded checkpoint fills no query up
            reads.query_expansion = None
        expansion = reads.query_expansion
        positions = getattr(reads.auto_model.config, "max_position_embeddings", _LONGEST)
        usual = min(tokenizer.model_max_length, positions, _LONGEST)
        self.window: int = reads.document_length or usual
        self.longest_query = max(self.window, reads.query_length or 0, expansion["length"] if expansion else 0, usual)
        reads.query_length = self.longest_query
        if expansion:  # [MASK] fills short queries as before, and long ones are not cut at that length
            reads.query_expansion = expansion | {"strategy": "min"}

    @classmethod
    def load(cls, checkpoint: Checkpoint, precision: str = "auto") -> Encoder:
        """Load an encoder, on the GPU if there is one; the import of sentence-transformers takes seconds.

        Args:
            checkpoint: of ``find_checkpoint``.
            precision: for passages; queries are float32. ``auto`` is bfloat16 where the device computes with it, else
                float32 (bfloat16 is several times slower on such a CPU). The ranking is the same but for near ties:
                top-10 overlap .993, same first passage for 99 of 100 queries, 160 passages. There is no int8: torch's
                dynamic quantization gave embeddings with a cosine of only .91 to .92 to these, and on a CPU with AVX2
                alone no more passages a second.

        Raises:
            CheckpointError: if it is no late-interaction model, has code or pickles of its own, or cannot be loaded.
        """
        import torch
        from sentence_transformers import MultiVectorEncoder

        _check_modules(checkpoint)
        try:
            _check_files(checkpoint.folder)
            with quiet(), torch.random.fork_rng():
                model = MultiVectorEncoder(
                    str(checkpoint.folder),
                    device="cuda" if torch.cuda.is_available() else "cpu",
                    trust_remote_code=False,
                    local_files_only=True,
                    model_kwargs={"dtype": torch.float32},
                )
            return cls(checkpoint, _precision(precision, model.device.type), model.eval())
        except Exception as problem:  # whatever a foreign folder makes sentence-transformers and transformers raise
            raise CheckpointError(
                f"{checkpoint.folder} cannot be loaded as a checkpoint for late interaction: {problem}"
            ) from problem

    @property
    def dim(self) -> int:
        """Return the number of dimensions of an embedding."""
        return int(self._model.get_embedding_dimension())

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, on the CPU, without padding.

        A query is read to its end, up to `longest_query`. colbert-ai and PyLate cut it at the length that the
        checkpoint states, 32 tokens for ColBERTv2; up to there all is the same.
        """
        prompt = self._model.prompts.get("query") or ""
        with self._lock:
            ids = self._model.tokenizer([prompt + query for query in queries], verbose=False)["input_ids"]
        self._warn_of_length([len(one) for one in ids], self.longest_query)
        with self._lock:
            matrices = self._model.encode_query(list(queries), batch_size=_QUERIES_TOGETHER, show_progress_bar=False)
        return [matrix.float().cpu() for matrix in matrices]

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

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        import torch

        tokens = self._model.preprocess(texts, prompt=self._model.prompts.get("document"), task="document")
        return {name: of_all for name, of_all in tokens.items() if isinstance(of_all, torch.Tensor)}

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        device = self._model.device
        found = self._model({name: of_all.to(device) for name, of_all in tokens.items()}, task="document")
        return found["token_embeddings"], found["attention_mask"].bool()

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self.precision == "bfloat16":
            return torch.autocast(self._model.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()


def _precision(asked: str, device: str) -> str:
    import torch

    if asked != "auto":
        return asked
    if device == "cpu":
        return cpu_precision()
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"


def _check_modules(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint gives one unit vector for each token.

    Raises:
        CheckpointError: if it is a sentence encoder; or else has no projection, which would be drawn at random; or does
            not normalise.
    """
    kinds = {kind for kind, _ in modules_of(checkpoint.folder)}
    written = read_settings(checkpoint.folder / "config_sentence_transformers.json", {})
    native = written.get("model_type") == "MultiVectorEncoder"  # else Normalize is added when it is loaded
    by_colbert = "HF_ColBERT" in (read_settings(checkpoint.folder / "config.json", {}).get("architectures") or ())
    if "Pooling" in kinds:
        lacking = "it is a sentence encoder, which gives one vector for a text (--kind dense)"
    elif native and "Normalize" not in kinds:
        lacking = "its embeddings are not normalised"
    elif not (native or "Dense" in kinds or (by_colbert and not kinds)):
        lacking = "it has no projection (Dense, or the architecture HF_ColBERT)"
    else:
        return
    raise CheckpointError(f"{checkpoint.name} is no checkpoint for late interaction: {lacking}. Name another.")


def _check_files(folder: Path) -> None:
    """Check that no model is loaded in the place of one with code of its own, and that no weights are a pipe.

    Raises:
        ValueError: if one would be, or are.
    """
    for place in {folder, *(folder / path for _, path in modules_of(folder))}:
        check_weights(place)
    if "auto_map" in read_settings(folder / "config.json", {}):
        raise ValueError("config.json names code of its own (auto_map), which is never run. Name another checkpoint")
