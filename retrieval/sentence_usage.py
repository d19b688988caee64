"""How a sentence encoder wants to be used: pooling, norm, prefixes, window. Found in its folder, else by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..common.errors import CheckpointError
from .checkpoints import modules_of, read_settings

Pooling = Literal["mean", "cls"]
_LONGEST = 512
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
    window: int = _LONGEST


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
    return Usage(**{"window": _window(folder), **known, **_prompts(folder), **_modules(folder, stated), **stated})


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


def _window(folder: Path) -> int:
    """Return the smallest of the limits found; the tokenizer's is often a number without meaning."""
    limits = [
        read_settings(folder / "sentence_bert_config.json", {}).get("max_seq_length"),
        read_settings(folder / "tokenizer_config.json", {}).get("model_max_length"),
        read_settings(folder / "config.json", {}).get("max_position_embeddings"),
    ]
    return int(min([_LONGEST, *(number for number in limits if number)]))
