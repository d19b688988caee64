"""Queries of the embedded checkpoint through torch alone: the libraries that train and convert models take seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import torch

from ...common.errors import CheckpointError
from ..checkpoints import Checkpoint
from ..encoders import TextEncoder
from .encoder import Encoder

_QUERY_MARK = "[unused0]"  # ColBERT's [Q]


class EmbeddedQueries(Encoder):
    """The embedded checkpoint as the encoder of queries; the whole one is loaded when a passage is to be encoded.

    Its embeddings are those of `Encoder`, within 1e-5. It computes on the CPU, where a query takes milliseconds.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        TextEncoder.__init__(self, checkpoint, "float32", None)
        try:
            self._config = json.loads((checkpoint.folder / "config.json").read_text(encoding="utf-8"))
            self._weights = load_file(checkpoint.folder / "model.safetensors")
            self.dim = len(self._weights["linear.weight"])
            self._tokenizer = Tokenizer.from_file(str(checkpoint.folder / "tokenizer.json"))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            self._mark: int = self._tokenizer.get_vocab()[_QUERY_MARK]
            self.longest_query = self._config["max_position_embeddings"]
        except Exception as problem:  # a foreign folder
            raise CheckpointError(
                f"{checkpoint.folder} cannot be loaded as the embedded checkpoint: {problem}"
            ) from problem

    @cached_property
    def _whole(self) -> Encoder:
        return Encoder.load(self.checkpoint)

    def queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Return one (tokens, dim) float32 tensor for each query, without padding."""
        found = [self._ids(query) for query in queries]
        self._warn_of_length(map(len, found), self.longest_query)
        cut = self.longest_query - 1
        kept = [torch.tensor(ids if len(ids) <= cut else [*ids[:cut], ids[-1]]) for ids in found]
        padded = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
        read = torch.arange(padded.shape[1])[None] < torch.tensor([[len(ids)] for ids in kept])
        with torch.inference_mode():
            unit = torch.nn.functional.normalize(self._states(padded, read) @ self._weights["linear.weight"].T, dim=-1)
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

    def _states(self, ids: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """Return (texts, tokens, hidden): BERT (Devlin et al., NAACL 2019), of which ``read`` marks the tokens read."""
        from torch.nn import functional

        def of(part: str) -> tuple[torch.Tensor, torch.Tensor]:
            return self._weights[f"bert.{part}.weight"], self._weights[f"bert.{part}.bias"]

        def normed(part: str, states: torch.Tensor) -> torch.Tensor:
            return functional.layer_norm(states, states.shape[-1:], *of(part), self._config["layer_norm_eps"])

        words, positions, kinds = (
            self._weights[f"bert.embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        states = normed("embeddings.LayerNorm", words[ids] + positions[: ids.shape[1]] + kinds[0])
        for number in range(self._config["num_hidden_layers"]):
            own = f"encoder.layer.{number}."
            query, key, value = (
                functional.linear(states, *of(f"{own}attention.self.{part}"))
                .unflatten(-1, (self._config["num_attention_heads"], -1))
                .transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(query, key, value, read[:, None, None])
            seen = functional.linear(seen.transpose(1, 2).flatten(2), *of(f"{own}attention.output.dense"))
            states = normed(f"{own}attention.output.LayerNorm", states + seen)
            inner = functional.gelu(functional.linear(states, *of(f"{own}intermediate.dense")))
            states = normed(f"{own}output.LayerNorm", states + functional.linear(inner, *of(f"{own}output.dense")))
        return states
