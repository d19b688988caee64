"""Encoders of late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020, section 3), through sentence-transformers.

It loads checkpoints of colbert-ai (ColBERTv2, answerai-colbert-small, the embedded one), of PyLate (GTE-ModernColBERT)
and its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ...common.errors import CheckpointError
from ..checkpoints import Checkpoint, modules_of, read_settings
from ..encoders import TextEncoder, precision_of, quiet

_QUERIES_TOGETHER = 32
_LONGEST = 8192
"""Tokens of a text that are read where neither the checkpoint nor its tokenizer says how many."""


class Encoder(TextEncoder):
    """A model of one unit vector for each token of a query or a passage. Made by ``load``.

    Attributes:
        longest_query: the largest window that the checkpoint states, for passages or queries.
    """

    def __init__(self, checkpoint: Checkpoint, precision: str, model: Any) -> None:
        super().__init__(checkpoint, precision, model)
        self.dim = int(model.get_embedding_dimension())
        reads, tokenizer = model[0], model.tokenizer
        tokenizer.padding_side = "right"  # batches are cut there
        if tokenizer.mask_token_id == tokenizer.pad_token_id:  # the embedded checkpoint fills no query up
            reads.query_expansion = None
        expansion = reads.query_expansion
        positions = getattr(reads.auto_model.config, "max_position_embeddings", _LONGEST)
        usual = min(tokenizer.model_max_length, positions, _LONGEST)
        self.window = reads.document_length or usual
        self.longest_query = max(self.window, reads.query_length or 0, expansion["length"] if expansion else 0, usual)
        reads.query_length = self.longest_query
        if expansion:  # [MASK] fills short queries as before, and long ones are not cut at that length
            reads.query_expansion = expansion | {"strategy": "min"}

    @classmethod
    def load(cls, checkpoint: Checkpoint, precision: str = "auto") -> Encoder:
        """Load an encoder, on the GPU if there is one; the import of sentence-transformers takes seconds.

        Args:
            checkpoint: of ``late_checkpoint``.
            precision: for passages; queries are float32. ``auto`` is bfloat16 where the device computes with it, else
                float32. The ranking is the same but for near ties: top-10 overlap .993, same first passage for 99 of
                100 queries, 160 passages. There is no int8: torch's dynamic quantization gave embeddings with a cosine
                of only .91 to .92 to these, and on a CPU with AVX2 alone no more passages a second.
        """
        from sentence_transformers import MultiVectorEncoder

        _check(checkpoint)
        device, on_gpu = "cpu", "float32"
        if torch.cuda.is_available():
            device = "cuda"
            on_gpu = "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
        computed = precision_of(precision, device, on_gpu)
        try:
            with quiet(), torch.random.fork_rng():
                model = MultiVectorEncoder(
                    str(checkpoint.folder),
                    device=device,
                    trust_remote_code=False,
                    local_files_only=True,
                    model_kwargs={"dtype": torch.float32},
                )
            return cls(checkpoint, computed, model.eval())
        except Exception as problem:  # whatever a foreign folder makes sentence-transformers and transformers raise
            raise CheckpointError(
                f"{checkpoint.folder} cannot be loaded as a checkpoint for late interaction: {problem}"
            ) from problem

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, on the CPU, without padding.

        A query is read to its end, up to `longest_query`. colbert-ai and PyLate cut it at the length that the
        checkpoint states, 32 tokens for ColBERTv2; up to there all is the same.
        """
        prompt = self._model.prompts.get("query") or ""
        with self._lock:
            ids = self._model.tokenizer([prompt + query for query in queries], verbose=False)["input_ids"]
            self._warn_of_length(map(len, ids), self.longest_query)
            matrices = self._model.encode_query(list(queries), batch_size=_QUERIES_TOGETHER, show_progress_bar=False)
        return [matrix.float().cpu() for matrix in matrices]

    def _vectors(self, texts: Sequence[str]) -> Iterator[torch.Tensor]:
        """Return the mean token embedding of each text."""
        return (matrix.float().mean(0) for matrix in self.passages(texts))

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        tokens = self._model.preprocess(texts, prompt=self._model.prompts.get("document"), task="document")
        return {name: of_all for name, of_all in tokens.items() if isinstance(of_all, torch.Tensor)}

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        device = self._model.device
        found = self._model({name: of_all.to(device) for name, of_all in tokens.items()}, task="document")
        embedded, kept = found["token_embeddings"].cpu(), found["attention_mask"].bool().cpu()
        return [matrix[rows] for matrix, rows in zip(embedded, kept, strict=True)]


def _check(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint gives one unit vector for each token, without code of its own."""
    kinds = {kind for kind, _ in modules_of(checkpoint.folder)}
    written = read_settings(checkpoint.folder / "config_sentence_transformers.json", {})
    native = written.get("model_type") == "MultiVectorEncoder"  # else Normalize is added when it is loaded
    config = read_settings(checkpoint.folder / "config.json", {})
    by_colbert = "HF_ColBERT" in (config.get("architectures") or ())
    if "auto_map" in config:
        fault = "config.json names code of its own (auto_map), which is never run"
    elif "Pooling" in kinds:
        fault = "it is a sentence encoder, which gives one vector for a text (--kind dense)"
    elif native and "Normalize" not in kinds:
        fault = "its embeddings are not normalised"
    elif not (native or "Dense" in kinds or (by_colbert and not kinds)):
        fault = "it has no projection (Dense, or the architecture HF_ColBERT)"
    else:
        return
    raise CheckpointError(f"{checkpoint.name} is no checkpoint for late interaction: {fault}. Name another.")
