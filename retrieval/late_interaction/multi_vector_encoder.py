"""Encoders as PyLate and sentence-transformers write them, through sentence-transformers: GTE-ModernColBERT and others.

sentence-transformers loads what PyLate writes. PyLate itself asks for an older transformers than the one here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import CheckpointError
from ..encoders import Checkpoint, batches, check_weights, cpu_precision, held, modules_of, quiet, read_settings
from .encoder import TOKENS_A_BATCH, Encoder

if TYPE_CHECKING:
    import torch

_LONGEST = 8192
"""Tokens of a text that are read where neither the checkpoint nor its tokenizer says how many."""


class MultiVectorEncoder(Encoder):
    """A checkpoint of PyLate's or sentence-transformers': dense layers, prefixes, any dimension. Made by ``load``.

    Attributes:
        window: tokens of a passage that are read, markers included.
        longest_query: the largest window that the checkpoint states, for passages or queries.
    """

    window: int = 0
    longest_query: int = 0

    def __init__(self, checkpoint: Checkpoint, precision: str, model: Any) -> None:
        super().__init__(checkpoint, precision, model)
        reads, expansion = model[0], model[0].query_expansion
        model.tokenizer.padding_side = "right"  # batches are cut there
        usual = min(model.tokenizer.model_max_length, _LONGEST)
        self.window = reads.document_length or usual
        self.longest_query = max(self.window, reads.query_length or 0, expansion["length"] if expansion else 0, usual)
        reads.query_length = self.longest_query
        if expansion:  # [MASK] fills short queries as before, and long ones are not cut at that length
            reads.query_expansion = expansion | {"strategy": "min"}

    @classmethod
    def load(cls, checkpoint: Checkpoint, precision: str = "auto") -> MultiVectorEncoder:
        """Load an encoder, on the GPU if there is one; the import of sentence-transformers takes seconds.

        Args:
            checkpoint: of ``find_checkpoint``.
            precision: for passages; queries are float32. ``auto`` is bfloat16 where the device computes with it, else
                float32.

        Raises:
            CheckpointError: if it is no late-interaction model, has code or pickles of its own, or cannot be loaded; or
                if sentence-transformers is not installed.
        """
        import torch

        _check_modules(checkpoint)
        found = _sentence_transformers(checkpoint)
        try:
            _check_files(checkpoint.folder)
            with quiet(), torch.random.fork_rng():
                model = found(
                    str(checkpoint.folder),
                    device="cuda" if torch.cuda.is_available() else "cpu",
                    trust_remote_code=False,
                    local_files_only=True,
                    model_kwargs={"dtype": torch.float32, "use_safetensors": True},
                )
            return cls(checkpoint, _precision(precision, model.device.type), held(model).eval())
        except Exception as problem:  # whatever a foreign folder makes sentence-transformers and transformers raise
            raise CheckpointError(
                f"{checkpoint.folder} cannot be loaded as a checkpoint of PyLate or sentence-transformers: {problem}"
            ) from problem

    @property
    def dim(self) -> int:
        """Return the number of dimensions of an embedding."""
        return int(self._model.get_embedding_dimension())

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, on the CPU, without padding.

        A query is read to its end, up to `longest_query`. PyLate cuts it at the checkpoint's ``query_length``; up to
        that length all is the same.
        """
        prompt = self._model.prompts.get("query") or ""
        with self._lock:
            ids = self._model.tokenizer([prompt + query for query in queries], verbose=False)["input_ids"]
        lengths = [len(one) for one in ids]
        self._warn_of_length(lengths, self.longest_query)
        embedded: dict[int, torch.Tensor] = {}
        for batch in batches(lengths, TOKENS_A_BATCH[self._model.device.type]):
            with self._lock:
                matrices = self._model.encode_query(
                    [queries[position] for position in batch], batch_size=len(batch), show_progress_bar=False
                )
            embedded.update(zip(batch, (matrix.float().cpu() for matrix in matrices), strict=True))
        return [embedded[position] for position in range(len(queries))]

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        import torch

        tokens = self._model.preprocess(texts, prompt=self._model.prompts.get("document"), task="document")
        return {name: of_all for name, of_all in tokens.items() if isinstance(of_all, torch.Tensor)}

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        device = self._model.device
        found = self._model({name: of_all.to(device) for name, of_all in tokens.items()}, task="document")
        return found["token_embeddings"], found["attention_mask"].bool()


def _precision(asked: str, device: str) -> str:
    import torch

    if asked != "auto":
        return asked
    if device == "cpu":
        return cpu_precision()
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"


def _sentence_transformers(checkpoint: Checkpoint) -> Any:
    """Return the class that loads such checkpoints.

    Raises:
        CheckpointError: if sentence-transformers is not installed, or is too old.
    """
    try:
        from sentence_transformers import MultiVectorEncoder as SentenceTransformersEncoder
    except ImportError as missing:
        raise CheckpointError(
            f"{checkpoint.name} was written by PyLate or sentence-transformers, and sentence-transformers 6.2 or later "
            "is needed to load it. Install it: pip install 'questree[sentence-transformers]'"
        ) from missing
    return SentenceTransformersEncoder


def _check_modules(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint gives one unit vector for each token.

    Raises:
        CheckpointError: if it is a sentence encoder; or else has no projection, which would be drawn at random; or does
            not normalise.
    """
    kinds = {kind for kind, _ in modules_of(checkpoint.folder)}
    written = read_settings(checkpoint.folder / "config_sentence_transformers.json", {})
    native = written.get("model_type") == "MultiVectorEncoder"  # else Normalize is added when it is loaded
    if "Pooling" in kinds:
        lacking = "it is a sentence encoder, which gives one vector for a text (--kind dense)"
    elif native and "Normalize" not in kinds:
        lacking = "its embeddings are not normalised"
    elif not native and "Dense" not in kinds:
        lacking = "it has no projection (Dense)"
    else:
        return
    raise CheckpointError(f"{checkpoint.name} is no checkpoint for late interaction: {lacking}. Name another.")


def _check_files(folder: Path) -> None:
    """Check that the files of a checkpoint and of its modules bring no code and no pickle.

    Raises:
        ValueError: if one does, or is no regular file; or if an activation is not torch's, for which
            sentence-transformers would take another.
    """
    modules = modules_of(folder)
    for place in {folder, *(folder / path for _, path in modules)}:
        check_weights(place)
        for file in place.glob("*.json"):
            if b"auto_map" in file.read_bytes():
                raise ValueError(
                    f"{file.name} names code of its own (auto_map), which is never run. Name another checkpoint"
                )
        if [*place.glob("*.bin")] and not [*place.glob("*.safetensors")]:
            raise ValueError(
                f"the weights in {place} are a pickle (.bin), which is not loaded. Save them as safetensors"
            )
    for layer in (folder / path for kind, path in modules if kind != "Transformer"):  # where it is a name, such as gelu
        activation = str(read_settings(layer / "config.json", {}).get("activation_function", "torch."))
        if not activation.startswith("torch."):
            raise ValueError(f"{activation} in {layer} is code that is not run. Name another checkpoint")
