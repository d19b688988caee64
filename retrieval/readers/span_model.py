"""DPR's reader (Karpukhin et al., EMNLP 2020, section 6.1) over any BERT-like encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import CheckpointError
from ...common.files import replacing

if TYPE_CHECKING:
    import torch

_WEIGHTS = "model.safetensors"


class SpanLogits(NamedTuple):
    """Of (passages, tokens), (passages, tokens) and (passages,); named as transformers names DPR's."""

    start_logits: torch.Tensor
    end_logits: torch.Tensor
    relevance_logits: torch.Tensor


class SpanModel:
    """An encoder, a head for a span's start and end on every token, and one for relevance on the first token.

    DPR's published readers are BERT alone; this takes any encoder of transformers whose output is one vector a token.
    Made by ``on_encoder`` (heads drawn at random, to be trained) or ``load``.
    """

    def __init__(self, encoder: Any) -> None:
        import torch

        self.config = encoder.config
        heads = {
            "spans": torch.nn.Linear(self.config.hidden_size, 2),
            "relevance": torch.nn.Linear(self.config.hidden_size, 1),
        }
        for head in heads.values():
            torch.nn.init.normal_(head.weight, std=0.02)
            torch.nn.init.zeros_(head.bias)
        self.module = torch.nn.ModuleDict({"encoder": encoder, **heads}).eval()

    @classmethod
    def on_encoder(cls, name: str | Path, *, device: str | None = None) -> tuple[SpanModel, Any]:
        """An untrained reader over a published encoder, and its tokenizer; the heads follow torch's random state.

        Raises:
            CheckpointError: the encoder cannot be found, fetched or loaded.
        """
        from ..hub import load_model

        encoder, tokenizer, chosen = load_model("AutoModel", name, device=device)
        if not getattr(encoder.config, "hidden_size", None):
            raise CheckpointError(f"{name} is no BERT-like encoder: its configuration has no hidden size.")
        model = cls(encoder)
        model.module.to(chosen)
        return model, tokenizer

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> tuple[SpanModel, Any]:
        """The reader that ``save`` left in a folder, and its tokenizer.

        Raises:
            CheckpointError: the folder is incomplete or damaged.
        """
        import torch
        from safetensors.torch import load_file
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        try:
            here = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **here)
            model = cls(AutoModel.from_config(AutoConfig.from_pretrained(str(folder), **here)))
            model.module.load_state_dict(load_file(folder / _WEIGHTS))
        except Exception as problem:  # transformers, torch and safetensors raise many kinds, all meaning the same
            reason = str(problem).strip().splitlines() or [type(problem).__name__]
            raise CheckpointError(
                f"The reader in {folder} cannot be loaded ({reason[0]}). Train it again."
            ) from problem
        model.module.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return model, tokenizer

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        found: torch.device = next(self.module.parameters()).device
        return found

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SpanLogits:
        """Logits of a batch of (passages, tokens)."""
        states = self.module["encoder"](input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        spans = self.module["spans"](states)
        return SpanLogits(spans[..., 0], spans[..., 1], self.module["relevance"](states[:, 0])[:, 0])

    def save(self, folder: Path, tokenizer: Any) -> None:
        """Write configuration, tokenizer and weights (safetensors); the weights are replaced in one step."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        self.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.module.state_dict().items()}
        with replacing(folder / _WEIGHTS) as unfinished:
            save_file(weights, unfinished, metadata={"format": "pt"})
