"""The model of DPR's reader (Karpukhin et al., EMNLP 2020, section 6.1) over any BERT-like encoder, and its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from ..common.errors import CheckpointError
from ..common.files import put_in_place, replacing
from .checkpoints import check_weights
from .encoders import load_model
from .passage import Passage

_WEIGHTS = "model.safetensors"


class SpanLogits(NamedTuple):
    """Logits of (passages, tokens), (passages, tokens) and (passages,), named as transformers names DPR's."""

    start_logits: torch.Tensor
    end_logits: torch.Tensor
    relevance_logits: torch.Tensor


class SpanModel(torch.nn.Module):
    """An encoder, a head for a span's start and end on every token, and one for relevance on the first token.

    DPR's published readers are BERT alone; this takes any encoder of transformers whose output is one vector a token.
    Made by ``on_encoder`` (heads drawn at random, to be trained) or ``load``.
    """

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.config, self.encoder = encoder.config, encoder
        self.spans, self.relevance = (torch.nn.Linear(self.config.hidden_size, count) for count in (2, 1))
        for head in (self.spans, self.relevance):
            torch.nn.init.normal_(head.weight, std=0.02)
            torch.nn.init.zeros_(head.bias)
        self.eval()

    @classmethod
    def on_encoder(cls, name: str | Path) -> tuple[SpanModel, Any]:
        """Return an untrained reader over an encoder, and its tokenizer; torch's random state draws the heads."""
        encoder, tokenizer = load_model("AutoModel", name)
        return cls(encoder).to(encoder.device), tokenizer

    @classmethod
    def load(cls, folder: Path) -> tuple[SpanModel, Any]:
        """Load the reader that ``save`` left in a folder, and its tokenizer."""
        from safetensors.torch import load
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        try:
            check_weights(folder)
            here = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **here)
            model = cls(AutoModel.from_config(AutoConfig.from_pretrained(str(folder), **here)))
            model.load_state_dict(load((folder / _WEIGHTS).read_bytes()))  # not mapped
        except Exception as problem:  # transformers, torch and safetensors raise many kinds; all mean the same
            reason = str(problem).strip().splitlines() or [type(problem).__name__]
            raise CheckpointError(
                f"The reader in {folder} cannot be loaded ({reason[0]}). Train it again."
            ) from problem
        return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer

    @property
    def device(self) -> torch.device:
        """Return where the weights are."""
        return next(self.parameters()).device

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SpanLogits:
        """Return the logits of a batch of (passages, tokens)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        spans = self.spans(states)
        return SpanLogits(spans[..., 0], spans[..., 1], self.relevance(states[:, 0])[:, 0])

    def save(self, folder: Path, tokenizer: Any) -> None:
        """Write configuration, tokenizer and weights (safetensors); each file is replaced in one step."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder) as place:  # these libraries write through links
            self.config.save_pretrained(place)
            tokenizer.save_pretrained(place)
            for file in Path(place).iterdir():
                put_in_place(file, folder / file.name)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        with replacing(folder / _WEIGHTS) as unfinished:
            save_file(weights, unfinished, metadata={"format": "pt"})


@dataclass(frozen=True)
class ReaderInput:
    """A batch of queries with a passage for each, as a reader's model takes it.

    Attributes:
        tokens: ``input_ids`` and ``attention_mask``, each (pairs, tokens).
        in_text: (pairs, tokens) whether the token is of the passage's text: a span may lie only there.
        offsets: (pairs, tokens, 2) where the token begins and ends in that text, in characters.
    """

    tokens: Any
    in_text: torch.Tensor
    offsets: torch.Tensor


def reader_input(tokenizer: Any, pairs: Sequence[tuple[str, Passage]], window: int) -> ReaderInput:
    """Return ``[CLS] query [SEP] title [SEP] text`` for each pair, cut to the window (DPR, section 6.1).

    Not for two threads at once: the tokenizer keeps the cut as its state.
    """
    encoded = tokenizer(
        [f"{query} {tokenizer.sep_token} {passage.title}" for query, passage in pairs],
        [passage.text for _, passage in pairs],
        truncation="longest_first",
        max_length=window,
        padding=True,
        return_offsets_mapping=True,
        return_tensors="pt",
        return_token_type_ids=False,
        return_attention_mask=True,
    )
    parts = [encoded.sequence_ids(row) for row in range(len(pairs))]
    in_text = torch.tensor([[part == 1 for part in row] for row in parts])
    return ReaderInput(offsets=encoded.pop("offset_mapping"), tokens=encoded, in_text=in_text)


def window_of(config: Any, wanted: int) -> int:
    """Return so many tokens, or as many as the encoder has positions for; RoBERTa and its kin reserve two."""
    positions = getattr(config, "max_position_embeddings", None)
    return wanted if not positions else min(wanted, positions - 2)


def best_span(start: torch.Tensor, end: torch.Tensor, longest: int) -> tuple[int, int] | None:
    """Return the first and last token of the span whose two logits sum highest, or None if no span is allowed.

    Args:
        start: (tokens,) logits; -inf where no span may begin.
        end: (tokens,) logits; -inf where no span may end.
        longest: the most tokens of a span, whose end is not before its start.
    """
    sums = start[:, None] + end[None, :]
    allowed = torch.ones_like(sums, dtype=torch.bool).triu().tril(longest - 1)
    sums = sums.masked_fill(~allowed, float("-inf"))
    flat = int(sums.argmax())
    if not torch.isfinite(sums.flatten()[flat]):
        return None
    return divmod(flat, len(end))
