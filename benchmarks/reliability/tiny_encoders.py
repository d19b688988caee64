"""Random encoders of several kinds, small enough to be trained in a test, with a tokenizer of a few words."""

import json
import random
from pathlib import Path

WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jetty", "kelp", "lagoon"),
    *("where", "is", "the", "lies", "at", "by", "of", "which", "stone", "tree", "water", "wood", "sand", "hill"),
)
KINDS = ("bert", "roberta", "distilbert")
SIZES = {
    **{"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2},
    **{"intermediate_size": 32, "hidden_dim": 32},  # the latter as DistilBERT calls it
    **{"max_position_embeddings": 64, "pad_token_id": 0},
}


def save_encoder(folder: Path, kind: str = "bert", seed: int = 0) -> Path:
    """Write a random encoder of this kind as transformers publishes one."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {token: n for n, token in enumerate([*special, ".", ",", "?", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = AutoConfig.for_model(kind, vocab_size=len(vocabulary), **SIZES)
        AutoModel.from_config(config).save_pretrained(folder)
    return folder


def write_corpus(file: Path, passages: int) -> None:
    """Write passages of its words."""
    draw = random.Random(0)
    rows = [
        {"id": f"p{n}", "title": draw.choice(WORDS), "text": " ".join(draw.choices(WORDS, k=8))}
        for n in range(passages)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
