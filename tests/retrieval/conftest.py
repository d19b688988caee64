"""A tiny corpus and a tiny random ColBERT checkpoint, in colbert-ai's format."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from questree.retrieval import Passage
from questree.retrieval.checkpoints import Checkpoint
from questree.retrieval.encoders import TextEncoder
from questree.retrieval.late_interaction.encoder import Encoder

if TYPE_CHECKING:
    import torch

WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island"),
    *("jetty", "kelp", "lagoon", "meadow", "north", "orchard", "pebble", "summit", "willow"),
)


@pytest.fixture(scope="session")
def passages() -> list[Passage]:
    draw = random.Random(7)
    return [
        Passage(id=f"p{n}", title=draw.choice(WORDS), text=" ".join(draw.choices(WORDS, k=draw.randint(4, 30))) + ".")
        for n in range(120)
    ]


@pytest.fixture(scope="session")
def corpus_file(passages: list[Passage], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    file.write_text("".join(p.model_dump_json(include={"id", "title", "text"}) + "\n" for p in passages))
    return file


def save_tokenizer(folder: Path, mask: str = "[PAD]", added: Sequence[str] = ()) -> int:
    """A word-level BERT tokenizer; the size of its vocabulary."""
    from tokenizers.implementations import BertWordPieceTokenizer
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    entries = [*special, *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *letters, *(f"##{c}" for c in letters), *WORDS]
    vocabulary = {token: n for n, token in enumerate(entries)}
    roles = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": mask}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=BertWordPieceTokenizer(vocab=vocabulary)._tokenizer,
        **{f"{role}_token": token for role, token in roles.items()},
    )
    tokenizer.add_tokens(list(added))
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


@pytest.fixture(scope="session")
def tiny_config():
    def make(vocabulary: int):
        from transformers import BertConfig

        return BertConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=128,
        )

    return make


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny_config) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint"), tiny_config, seed=1)


def unit_rows(count: int, dim: int, seed: int = 5) -> torch.Tensor:
    import torch

    rows = torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1)


def make_checkpoint(folder: Path, tiny_config, seed: int, mask="[PAD]", lengths=(40, 40)) -> Path:
    import torch
    from safetensors.torch import save_file
    from transformers import BertModel

    config = tiny_config(save_tokenizer(folder, mask))
    config.architectures = ["HF_ColBERT"]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        weights = {f"bert.{name}": tensor.contiguous() for name, tensor in BertModel(config).state_dict().items()}
        weights["linear.weight"] = torch.randn(32, 32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    settings = {"dim": 32, "doc_maxlen": lengths[1], "query_maxlen": lengths[0], "mask_punctuation": True}
    (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


class Remembering(Encoder):
    """Computes the embeddings of a passage once in a session, each passage alone."""

    def __init__(self, loaded: Encoder, embedded: dict[str, tuple[torch.Tensor, int]]):
        super().__init__(loaded.checkpoint, loaded.precision, loaded._model)
        self._embeddings = embedded

    def _encoded(self, texts: list[str], progress: Callable[[int], None]) -> list[torch.Tensor]:
        for text in texts:
            if text not in self._embeddings:
                before = self.filled
                (rows,) = super()._encoded([text], lambda _: None)
                self._embeddings[text] = rows, self.filled - before
                self.filled = before
            self.filled += self._embeddings[text][1]
            progress(1)
        return [self._embeddings[text][0] for text in texts]


@pytest.fixture(scope="session")
def _loaded() -> dict[tuple[str, str], tuple[Encoder, dict]]:
    return {}


@pytest.fixture
def loaded_once(_loaded: dict[tuple[str, str], tuple[Encoder, dict]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Load each checkpoint and encode each text once: for tests of what is done with the embeddings."""
    load = Encoder.load

    def loaded(checkpoint: Checkpoint, precision: str = "auto") -> Encoder:
        key = (checkpoint.fingerprint, precision)
        if key not in _loaded:
            _loaded[key] = load(checkpoint, precision), {}
        return Remembering(*_loaded[key])

    monkeypatch.setattr(Encoder, "load", loaded)


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int, problem: BaseException | None = None) -> list[int]:
    """Let encoders raise at their passage of that number; how many were encoded is in the list."""
    encoded, of_model = [0], TextEncoder.passages

    def stopping(self, texts, progress=lambda _: None):
        for matrix in of_model(self, texts, progress):
            if problem is not None and encoded[0] == count:
                raise problem
            encoded[0] += 1
            yield matrix

    monkeypatch.setattr(TextEncoder, "passages", stopping)
    return encoded


@contextmanager
def interrupted(
    count: int, problem: BaseException | None = None, match: str | None = None, error: type[BaseException] | None = None
) -> Iterator[None]:
    """The block ends with an error, as the encoder fails at its passage of that number."""
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, count, problem := problem or RuntimeError("interrupted"))
        with pytest.raises(error or type(problem), match=match):
            yield


@pytest.fixture(scope="session")
def sentence_folder(tiny_checkpoint, tmp_path_factory) -> Path:
    """The random encoder under a name that says nothing; to it texts are alike that share words."""
    return shutil.copytree(tiny_checkpoint, tmp_path_factory.mktemp("sentence") / "tiny")


@pytest.fixture(scope="session")
def index_of(corpus_file, tiny_checkpoint, sentence_folder, tmp_path_factory) -> Callable[[str], Path]:
    """Gives the index of a kind, which is built when it is first asked for."""
    from questree.retrieval import build_index

    at = tmp_path_factory.mktemp("indexes")

    @cache
    def built(kind: str) -> Path:
        checkpoint = sentence_folder if kind == "dense" else tiny_checkpoint
        return build_index(corpus_file, at / kind, kind=kind, checkpoint=checkpoint)

    return built


@pytest.fixture(scope="session")
def exact_folder(index_of) -> Path:
    return index_of("exact")


@pytest.fixture(scope="session")
def dense(index_of):
    from questree.retrieval import load_index

    return load_index(index_of("dense"))
