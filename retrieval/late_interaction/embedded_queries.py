"""Queries of the embedded checkpoint through torch alone: the libraries that train and convert models take seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...common.errors import CheckpointError
from ..encoders import Checkpoint, TextEncoder
from .encoder import Encoder

if TYPE_CHECKING:
    import torch

_QUERY_MARK = "[unused0]"  # ColBERT's [Q]
_PROJECTIONS = {
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}
"""Torch's names for the parts of a layer of BERT, and the checkpoint's."""


class EmbeddedQueries(Encoder):
    """The embedded checkpoint as the encoder of queries; the whole one is loaded when a passage is to be encoded.

    Its embeddings are those of `Encoder`, within 1e-6. It computes on the CPU, where a query takes milliseconds.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        import torch
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        TextEncoder.__init__(self, checkpoint, "float32", None)
        try:
            config = json.loads((checkpoint.folder / "config.json").read_text(encoding="utf-8"))
            weights = load_file(checkpoint.folder / "model.safetensors")
            self._tokenizer = Tokenizer.from_file(str(checkpoint.folder / "tokenizer.json"))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            self._mark: int = self._tokenizer.get_vocab()[_QUERY_MARK]
            layer = torch.nn.TransformerEncoderLayer(
                config["hidden_size"],
                config["num_attention_heads"],
                config["intermediate_size"],
                activation="gelu",
                layer_norm_eps=config["layer_norm_eps"],
                batch_first=True,
            )
            layers = config["num_hidden_layers"]
            self._layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()
            self._layers.load_state_dict(_renamed(weights, layers))
        except Exception as problem:  # a foreign folder
            raise CheckpointError(
                f"{checkpoint.folder} cannot be loaded as the embedded checkpoint: {problem}"
            ) from problem
        self._weights = {name: tensor for name, tensor in weights.items() if ".layer." not in name}
        self._epsilon = config["layer_norm_eps"]
        self.longest_query = config["max_position_embeddings"]

    @cached_property
    def _whole(self) -> Encoder:
        return Encoder.load(self.checkpoint)

    @property
    def dim(self) -> int:
        """Return the number of dimensions of an embedding."""
        return len(self._weights["linear.weight"])

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, without padding."""
        import torch

        found = [self._ids(query) for query in queries]
        self._warn_of_length([len(ids) for ids in found], self.longest_query)
        cut = self.longest_query - 1
        kept = [torch.tensor(ids if len(ids) <= cut else [*ids[:cut], ids[-1]]) for ids in found]
        padded = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
        filling = torch.arange(padded.shape[1])[None] >= torch.tensor([[len(ids)] for ids in kept])
        with torch.inference_mode():
            shown = self._layers(self._placed(padded), src_key_padding_mask=filling)
            unit = torch.nn.functional.normalize(shown @ self._weights["linear.weight"].T, dim=-1)
        return [matrix[: len(ids)].clone() for matrix, ids in zip(unit, kept, strict=True)]

    def passages(
        self, texts: Iterable[str], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[torch.Tensor]:
        """Yield one (tokens, dim) float16 tensor for each text, as `Encoder` does."""
        return self._whole.passages(texts, progress)

    def _ids(self, query: str) -> list[int]:
        """Return the tokens of a query, with ColBERT's mark behind the first."""
        first, *others = self._tokenizer.encode(query).ids
        return [first, self._mark, *others]

    def _placed(self, ids: torch.Tensor) -> torch.Tensor:
        import torch

        words, positions, kinds, scale, shift = (
            self._weights[f"bert.embeddings.{name}"]
            for name in (
                *("word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight"),
                *("LayerNorm.weight", "LayerNorm.bias"),
            )
        )
        summed = words[ids] + positions[: ids.shape[1]] + kinds[0]
        return torch.nn.functional.layer_norm(summed, scale.shape, scale, shift, self._epsilon)


def _renamed(weights: dict[str, Any], layers: int) -> dict[str, Any]:
    """Return the weights of the layers under torch's names."""
    import torch

    renamed = {}
    for number in range(layers):
        own, kinds = f"bert.encoder.layer.{number}.", ("weight", "bias")
        for kind in kinds:
            parts = [weights[f"{own}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            renamed[f"layers.{number}.self_attn.in_proj_{kind}"] = torch.cat(parts)
        for torchs, berts in _PROJECTIONS.items():
            renamed |= {f"layers.{number}.{torchs}.{kind}": weights[f"{own}{berts}.{kind}"] for kind in kinds}
    return renamed
