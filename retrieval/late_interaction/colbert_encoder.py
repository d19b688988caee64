"""Encoders in colbert-ai's format, through colbert-ai: ColBERTv2, answerai-colbert-small."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import CheckpointError
from ..encoders import Checkpoint, check_weights, cpu_precision, held
from .compat import colbert_ready, without_extensions
from .encoder import Encoder

if TYPE_CHECKING:
    import torch


class ColbertEncoder(Encoder):
    """A checkpoint in colbert-ai's format, by its own code. Made by ``load``."""

    @classmethod
    def load(cls, checkpoint: Checkpoint, precision: str = "auto") -> ColbertEncoder:
        """Load an encoder, on the GPU if there is one; colbert-ai's import takes seconds.

        Args:
            checkpoint: of ``find_checkpoint``.
            precision: for passages on a CPU; queries are float32. ``auto`` is bfloat16 if the CPU computes with it,
                else float32 (bfloat16 is several times slower there). The ranking is the same but for near ties:
                top-10 overlap .993, same first passage for 99 of 100 queries, 160 passages. There is no int8: torch's
                dynamic quantization gave embeddings with a cosine of only .91 to .92 to these, and on a CPU with AVX2
                alone no more passages a second.

        Raises:
            CheckpointError: if it is not a model that colbert-ai can load.
        """
        import torch

        path = str(checkpoint.folder)
        with colbert_ready(), without_extensions():
            from colbert.infra import ColBERTConfig
            from colbert.modeling.checkpoint import Checkpoint as ColbertCheckpoint
            from colbert.utils.amp import MixedPrecisionManager

            try:
                check_weights(checkpoint.folder)
                _check_architecture(path)
                config = ColBERTConfig(checkpoint=path, model_name=path)
                model = held(ColbertCheckpoint(path, colbert_config=config, verbose=0))
            except Exception as problem:  # whatever a foreign folder makes colbert-ai and transformers raise
                raise CheckpointError(f"{path} cannot be loaded as a ColBERT checkpoint: {problem}") from problem
            if torch.cuda.is_available():
                model = model.cuda()
            else:
                model.amp_manager = MixedPrecisionManager(False)
        return cls(checkpoint, cpu_precision() if precision == "auto" else precision, model)

    @property
    def dim(self) -> int:
        """Return the number of dimensions of an embedding."""
        return int(self._model.colbert_config.dim)

    @property
    def window(self) -> int:
        """Return how many tokens of a passage are read, markers included."""
        return int(self._model.colbert_config.doc_maxlen)

    @property
    def longest_query(self) -> int:
        """Return how many tokens of a query the model can read, markers included."""
        tokenizer = self._model.query_tokenizer.tok
        positions = getattr(self._model.model.config, "max_position_embeddings", 512)
        return int(min(positions, tokenizer.model_max_length))

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, on the CPU, without padding.

        A query is read to its end, up to `longest_query`: colbert-ai cuts it at the ``query_maxlen`` of the
        checkpoint, which is 32 tokens for ColBERTv2, without a word. Up to that length all is as colbert-ai has it.
        """
        usual = int(self._model.query_tokenizer.config.query_maxlen)
        lengths = [max(usual, min(length, self.longest_query)) for length in self._query_lengths(queries)]
        embedded: dict[int, torch.Tensor] = {}
        for length in sorted(set(lengths)):
            positions = [position for position, own in enumerate(lengths) if own == length]
            matrices = self._embedded_queries([queries[position] for position in positions], length)
            embedded.update(zip(positions, matrices, strict=True))
        return [embedded[position] for position in range(len(queries))]

    def _query_lengths(self, queries: Sequence[str]) -> list[int]:
        """Return each query's tokens, with the marker that colbert-ai puts in; warn where they are too many."""
        tokenizer = self._model.query_tokenizer.tok
        with self._lock:  # colbert-ai sets where this tokenizer truncates
            lengths = [len(ids) + 1 for ids in tokenizer(list(queries), verbose=False)["input_ids"]]
        self._warn_of_length(lengths, self.longest_query)
        return lengths

    def _embedded_queries(self, queries: Sequence[str], length: int) -> list[torch.Tensor]:
        """Return the embeddings of queries that are all read up to the same length."""
        import torch

        tokenizer = self._model.query_tokenizer
        with self._lock, torch.inference_mode():
            usual, tokenizer.query_maxlen = tokenizer.query_maxlen, length
            try:
                ids, mask = tokenizer.tensorize(list(queries))
            finally:
                tokenizer.query_maxlen = usual
            read = (ids != self._model.pad_token).any(0)
            embedded = self._model.query(ids[:, read], mask[:, read], to_cpu=True).float()
        return [matrix[matrix.any(-1)] for matrix in embedded]

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        ids, attended = self._model.doc_tokenizer.tensorize(texts)
        return {"input_ids": ids, "attention_mask": attended}

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        embedded, kept = self._model.doc(*tokens.values(), keep_dims="return_mask", to_cpu=True)
        return embedded, kept.squeeze(-1)

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return what computes in bfloat16 on a CPU; on a GPU colbert-ai computes in float16 by itself."""
        return super()._autocast() if self._model.device.type == "cpu" else contextlib.nullcontext()


def _check_architecture(path: str) -> None:
    """Refuse code of the folder's own, which colbert-ai would run, as it trusts every folder.

    Refuse also a model that it cannot make (it catches every failure of its class factory and takes another model), and
    one without a projection.
    """
    for file in Path(path).glob("*.json"):
        if b"auto_map" in file.read_bytes():
            raise ValueError(
                f"{file.name} names code of its own (auto_map), which is never run. Name another checkpoint"
            )
    from colbert.modeling import hf_colbert
    from safetensors import safe_open
    from transformers import AutoConfig

    held = {name for file in Path(path).glob("*.safetensors") for name in safe_open(file, "pt").keys()}  # noqa: SIM118
    if held and "linear.weight" not in held:
        raise ValueError("it has no projection (linear.weight), which would be drawn at random")

    AutoConfig.from_pretrained(path, trust_remote_code=False)
    hf_colbert.class_factory(path)
