"""Texts as single vectors: Contriever, E5, or any sentence encoder that transformers loads, used as it wants to be.

Pooling, norm, prefixes and window are found in its folder, else by its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from ..common.errors import CheckpointError
from .base import batched
from .checkpoints import (
    LONGEST,
    Checkpoint,
    find_checkpoint,
    minilm_folder,
    modules_of,
    read_settings,
    text_window,
)
from .encoders import TextEncoder, load_model, precision_of

_QUERIES_TOGETHER = 64
Pooling = Literal["mean", "cls"]
_PROMPTS = "config_sentence_transformers.json"
_TASK = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True)
class Usage:
    """How texts become vectors.

    Attributes:
        pooling: the mean of the last layer's tokens, or its first.
        normalised: vectors of length 1, so that their product is the cosine.
        query_prefix: before each query.
        passage_prefix: before each passage.
        window: tokens of a text that are read, markers included.
    """

    pooling: Pooling = "mean"
    normalised: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    window: int = LONGEST


_KNOWN: tuple[tuple[str, dict[str, Any]], ...] = (
    # Izacard et al. (2022): the mean, by inner product
    (r"contriever", {"pooling": "mean", "normalised": False}),
    # multilingual-e5-large-instruct, and its model card: only queries have an instruction
    (r"e5-.*instruct", {"query_prefix": f"Instruct: {_TASK}\nQuery: "}),
    # Wang et al. (2022), and their model cards
    (r"e5-(small|base|large)", {"query_prefix": "query: ", "passage_prefix": "passage: "}),
    # Xiao et al. (2023), and their model cards
    (
        r"bge-(small|base|large)-en",
        {"pooling": "cls", "query_prefix": "Represent this sentence for searching relevant passages: "},
    ),
    # sentence-transformers' models for inner product
    (r"-dot-", {"normalised": False}),
)
"""What model cards say and folders do not, by the model's name."""


def find_sentence_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """Return the encoder of a name; it is on this machine then.

    Args:
        name: None or ``embedded`` for all-MiniLM-L6-v2 as its package holds it; a folder; or a name on the hub, such
            as ``facebook/contriever``, which is downloaded once.
    """
    return find_checkpoint(name, minilm_folder)


class SentenceEncoder(TextEncoder):
    """A model of one vector for each query and each passage.

    Args:
        checkpoint: of ``find_sentence_checkpoint``.
        usage: of ``find_usage``.
        precision: ``float16`` (GPU), ``bfloat16``, ``float32``. ``auto`` is float16 on a GPU; on a CPU bfloat16 if it
            computes with that, else float32.

    Attributes:
        longest: the most tokens of a text that the model can read; the window, if the model has no such bound.
        identity: all that a passage's vector depends on beside its text.
    """

    def __init__(self, checkpoint: Checkpoint, usage: Usage, precision: str = "auto") -> None:
        model, self._tokenizer = load_model("AutoModel", checkpoint.folder)
        super().__init__(checkpoint, precision_of(precision, model.device.type, "float16"), model)
        self.usage, self.window, self.dim = usage, usage.window, int(model.config.hidden_size)
        self.longest = int(getattr(model.config, "max_position_embeddings", None) or usage.window)
        self.identity = f"{checkpoint.fingerprint} {self.precision} {usage}"
        self._tokenizer.padding_side = "right"  # batches are cut there

    def queries(self, queries: Sequence[str]) -> torch.Tensor:
        """Return (queries, dim) float32, on the CPU; a query is read up to the encoder's window."""
        with self._lock:
            ids = self._tokenizer([self.usage.query_prefix + query for query in queries], verbose=False)["input_ids"]
        self._warn_of_length(map(len, ids), self.window)
        return torch.stack(self._vectors(queries))

    def _vectors(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return the vectors of texts as queries."""
        found: list[torch.Tensor] = []
        for some in batched((self.usage.query_prefix + text for text in texts), _QUERIES_TOGETHER):
            with self._lock, torch.no_grad():
                found += self._pooled(self._read(some))
        return found

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        return self._read([self.usage.passage_prefix + text for text in texts])

    def _read(self, texts: list[str]) -> dict[str, torch.Tensor]:
        cut = {"truncation": True, "max_length": self.window, "padding": True}
        return dict(
            self._tokenizer(texts, **cut, return_token_type_ids=False, return_attention_mask=True, return_tensors="pt")
        )

    def _embedded(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        return list(self._pooled(tokens).split(1))

    def _pooled(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return (texts, dim) float32, on the CPU."""
        given = {name: of_all.to(self._model.device) for name, of_all in tokens.items()}
        states, read = self._model(**given).last_hidden_state.float(), given["attention_mask"].unsqueeze(-1)
        vectors = states[:, 0] if self.usage.pooling == "cls" else (states * read).sum(1) / read.sum(1)
        return (torch.nn.functional.normalize(vectors, dim=1) if self.usage.normalised else vectors).cpu()


def find_usage(name: str, folder: Path, **given: Any) -> Usage:
    """Return how the encoder in a folder wants to be used: by its folder, else by its name.

    Args:
        name: by which it was asked for; the last part of a path or hub name says which model it is.
        folder: of its files; those of sentence-transformers (``modules.json`` …) count if they are there.
        given: fields of `Usage`; those that are not None override what is found.
    """
    last = Path(name).name.lower()
    known: dict[str, Any] = next((usage for pattern, usage in _KNOWN if re.search(pattern, last)), {})
    stated = {field: value for field, value in given.items() if value is not None}
    return Usage(**{"window": text_window(folder), **known, **_prompts(folder), **_modules(folder, stated), **stated})


def _modules(folder: Path, stated: dict[str, Any]) -> dict[str, Any]:
    """Return pooling and norm from the modules of sentence-transformers."""
    if not (kinds := dict(modules_of(folder))):
        return {}
    if further := set(kinds) - {"Transformer", "Pooling", "Normalize"}:
        raise CheckpointError(
            f"{folder} cannot be used as a sentence encoder: it has modules that are not known here "
            f"({', '.join(sorted(further))}). Name another encoder."
        )
    found: dict[str, Any] = {}
    if "Normalize" in kinds:
        found["normalised"] = True
    elif str(read_settings(folder / _PROMPTS, {}).get("similarity_fn_name")).startswith("dot"):
        found["normalised"] = False
    if "pooling" not in stated and "Pooling" in kinds:
        found["pooling"] = _pooling(folder, read_settings(folder / kinds["Pooling"] / "config.json", {}))
    return found


def _pooling(folder: Path, config: dict[str, Any]) -> Pooling:
    modes = [key.removeprefix("pooling_mode_") for key, on in config.items() if on is True and "pooling_mode_" in key]
    named = {"mean_tokens": "mean", "mean": "mean", "cls_token": "cls", "cls": "cls"}
    asked = modes or [str(config.get("pooling_mode", "mean"))]
    if len(asked) != 1 or asked[0] not in named:
        raise CheckpointError(
            f"{folder} asks for pooling by {', '.join(asked)}; here it is by mean or cls. Name another encoder, or "
            "say which of these to use: DenseSettings(pooling=…)."
        )
    return "cls" if named[asked[0]] == "cls" else "mean"


def _prompts(folder: Path) -> dict[str, str]:
    prompts = read_settings(folder / _PROMPTS, {}).get("prompts") or {}
    passage = next((prompts[name] for name in ("passage", "document", "corpus") if name in prompts), None)
    found = {"query_prefix": prompts.get("query"), "passage_prefix": passage}
    return {field: prefix for field, prefix in found.items() if prefix}
