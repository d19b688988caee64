"""Encoders of late interaction: the embeddings that colbert-ai and PyLate define, in batches that waste nothing."""

import json
import random
import shutil
import string
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from questree.common.errors import CheckpointError
from questree.retrieval import build_index, encoders, load_index, read_manifest
from questree.retrieval.late_interaction.checkpoint import late_checkpoint
from questree.retrieval.late_interaction.encoder import Encoder

from .conftest import WORDS, make_checkpoint, save_tokenizer

HIDDEN, QUERY_LENGTH, PASSAGE_LENGTH = 32, 12, 40
IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
SHORT, LONG = "where is kelp, north?", "amber basin delta fjord " * 8
TEXTS = ["north | amber. basin, (cedar)!", "kelp", "grove | " + LONG * 2, "harbor, island"]


@dataclass(frozen=True)
class Made:
    """What a checkpoint is made of; ``dims`` are those behind each dense layer. PyLate wrote it, or colbert-ai."""

    dims: tuple[int, ...] = (48,)
    query: str = "[Q] "
    passage: str = "[D] "
    filled: bool = True
    attended: bool = False
    skipped: tuple[str, ...] = tuple(string.punctuation)
    activation: str = IDENTITY
    by_colbert: bool = False


CASES = {
    "as PyLate writes by default": Made(),
    "two dense layers, no filling": Made(dims=(64, 96), filled=False, activation=TANH),
    "no prefixes, filling attended to": Made(dims=(128,), query="", passage="", attended=True),
    "no prefixes, no filling, nothing skipped": Made(dims=(40, 128), query="", passage="", filled=False, skipped=()),
    "as colbert-ai writes": Made((32,), "[unused0]", "[unused1]", by_colbert=True),
    "as colbert-ai writes, no filling": Made((32,), "[unused0]", "[unused1]", filled=False, by_colbert=True),
}


def write_checkpoint(folder: Path, config: object, made: Made) -> Path:
    """Write a checkpoint with random weights, in the files that PyLate 1.6 or colbert-ai writes."""
    folder.mkdir(parents=True)
    if made.by_colbert:
        mask = "[MASK]" if made.filled else "[PAD]"
        return make_checkpoint(folder, config, seed=1, mask=mask, lengths=(QUERY_LENGTH, PASSAGE_LENGTH))
    markers = [prefix for prefix in (made.query, made.passage) if prefix]
    size = save_tokenizer(folder, mask="[MASK]", added=markers)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        BertModel(config(size)).save_pretrained(folder)
        modules, width = [("", "sentence_transformers.models.Transformer")], HIDDEN
        for number, dim in enumerate(made.dims, 1):
            (place := folder / f"{number}_Dense").mkdir()
            bias = made.activation == TANH
            weights = {"linear.weight": torch.randn(dim, width) / width**0.5}
            save_file(weights | ({"linear.bias": torch.randn(dim) / 9} if bias else {}), place / "model.safetensors")
            layer = {"in_features": width, "out_features": dim, "bias": bias, "activation_function": made.activation}
            (place / "config.json").write_text(json.dumps(layer))
            modules.append((place.name, "pylate.models.Dense.Dense"))
            width = dim
    write_modules(folder, modules)
    settings = {
        "query_prefix": made.query,
        "document_prefix": made.passage,
        "query_length": QUERY_LENGTH,
        "document_length": PASSAGE_LENGTH,
        "do_query_expansion": made.filled,
        "attend_to_expansion_tokens": made.attended,
        "skiplist_words": made.skipped,
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": PASSAGE_LENGTH - 1}))
    return folder


def write_modules(folder: Path, modules: list[tuple[str, str]]) -> None:
    named = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(named))


@pytest.fixture(scope="module")
def written(tmp_path_factory, tiny_config):
    place = tmp_path_factory.mktemp("pylate")
    return {name: write_checkpoint(place / str(n), tiny_config, made) for n, (name, made) in enumerate(CASES.items())}


@pytest.fixture(scope="module")
def by_case(written):
    """The encoder of each case, loaded when it is first asked for."""

    class Loaded(dict):
        def __missing__(self, case):
            self[case] = Encoder.load(late_checkpoint(written[case]), "float32")
            return self[case]

    return Loaded()


@pytest.fixture
def copied(written, tmp_path):
    return Path(shutil.copytree(written["as PyLate writes by default"], tmp_path / "copy"))


@pytest.mark.parametrize("case", CASES)
def test_embeddings_are_those_of_sentence_transformers(written, by_case, case):
    from sentence_transformers import MultiVectorEncoder

    made, encoder = CASES[case], by_case[case]
    theirs = MultiVectorEncoder(str(written[case]), device="cpu")
    if made.by_colbert and not made.filled:  # it would fill queries up with padding, as colbert-ai does
        theirs[0].query_expansion = None
    assert (encoder.dim, encoder.window) == (made.dims[-1], PASSAGE_LENGTH)
    before = encoder.filled
    for rows, expected in zip(encoder.passages(TEXTS), theirs.encode_document(TEXTS), strict=True):
        assert torch.allclose(rows.float(), torch.as_tensor(expected), atol=1e-3)
    assert encoder.filled - before == 1
    for rows, expected in zip(
        encoder.queries(["kelp", "grove."]), theirs.encode_query(["kelp", "grove."]), strict=True
    ):
        assert torch.allclose(rows, torch.as_tensor(expected), atol=1e-5)


def test_what_sentence_transformers_itself_writes_is_loaded_alike(written, by_case, tmp_path):
    from sentence_transformers import MultiVectorEncoder

    for case in ("two dense layers, no filling", "no prefixes, filling attended to", "as colbert-ai writes"):
        native = tmp_path / case
        MultiVectorEncoder(str(written[case])).save_pretrained(str(native))
        assert json.loads((native / "config_sentence_transformers.json").read_text())["model_type"]
        ours, theirs = Encoder.load(late_checkpoint(native), "float32"), by_case[case]
        assert all(map(torch.equal, ours.passages(TEXTS), theirs.passages(TEXTS)))
        assert all(map(torch.equal, ours.queries([SHORT, LONG]), theirs.queries([SHORT, LONG])))


def test_a_query_beyond_the_window_is_warned_of_once(written, caplog):
    encoder = Encoder.load(late_checkpoint(written["as PyLate writes by default"]))
    assert encoder.longest_query == PASSAGE_LENGTH
    assert len(encoder.queries([LONG * 2])[0]) == PASSAGE_LENGTH
    encoder.queries([LONG * 2, "kelp"])
    assert caplog.text.count("is longer than the 40 that the encoder reads") == 1


def test_texts_are_embedded_alike_beside_others(by_case):
    for encoder in (by_case[case] for case in CASES):
        beside = encoder.queries([LONG, SHORT])[1]
        assert torch.allclose(beside, encoder.queries([SHORT])[0], atol=1e-6)
        together = list(encoder.passages(TEXTS))
        alone = [next(encoder.passages([text])) for text in TEXTS]
        assert all(torch.allclose(one, other, atol=2e-3) for one, other in zip(together, alone, strict=True))


def test_bfloat16_is_for_passages_alone(written):
    checkpoint = late_checkpoint(written["as PyLate writes by default"])
    half, full = (Encoder.load(checkpoint, precision) for precision in ("bfloat16", "float32"))
    for one, other in zip(half.passages(TEXTS), full.passages(TEXTS), strict=True):
        assert (one.float() * other.float()).sum(1).min() > 0.99
        assert not torch.equal(one, other)
    assert torch.equal(half.queries([SHORT])[0], full.queries([SHORT])[0])


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("colbert", "as PyLate writes by default"),
        ("exact", "two dense layers, no filling"),
        ("rerank", "no prefixes, filling attended to"),
    ],
)
def test_each_kind_of_index_holds_them(kind, case, written, passages, tmp_path):
    out = build_index(passages, tmp_path / "index", kind=kind, checkpoint=written[case])
    assert read_manifest(out).settings["dim"] == CASES[case].dims[-1]
    index = load_index(out)
    for wanted in passages[:3]:
        assert index(wanted.shown(), k=1)[0].text == wanted.text
    same, other = index.similarity(["kelp is north"], ["kelp is north", "amber summit"])[0]
    assert same > 0.999 > other


@pytest.mark.parametrize("changed", ["1_Dense/model.safetensors", "1_Dense/config.json", "modules.json"])
def test_the_fingerprint_follows_its_modules(copied, changed):
    before = late_checkpoint(copied).fingerprint
    (copied / changed).write_bytes((copied / changed).read_bytes() + b" ")
    assert late_checkpoint(copied).fingerprint != before


TRANSFORMER, DENSE = ("", "sentence_transformers.models.Transformer"), ("1_Dense", "pylate.models.Dense.Dense")


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ([TRANSFORMER, ("1_Pooling", "sentence_transformers.models.Pooling")], "sentence encoder.*--kind dense"),
        ([TRANSFORMER], "no projection"),
        ([TRANSFORMER, ("1_Dense", "evil.Dense")], "cannot be loaded.*'evil.Dense', which is not part of"),
        ([TRANSFORMER, ("../elsewhere", DENSE[1])], "names ../elsewhere, which is not in its folder"),
        ([TRANSFORMER, ("2_Dense", DENSE[1])], "cannot be loaded"),
    ],
)
def test_modules_that_give_no_such_embeddings_are_refused(copied, modules, said):
    write_modules(copied, modules)
    with pytest.raises(CheckpointError, match=said):
        Encoder.load(late_checkpoint(copied))


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        *(("modules.json", content, r"modules\.json") for content in ("{", "{}", "[1]", '[{"path": ""}]')),
        ("config_sentence_transformers.json", '{"model_type": "MultiVectorEncoder"}', "not normalised"),
    ],
)
def test_a_damaged_list_of_modules_and_embeddings_that_are_not_normalised_are_refused(copied, file, content, said):
    (copied / file).write_text(content)
    with pytest.raises(CheckpointError, match=said):
        Encoder.load(late_checkpoint(copied))


def test_an_encoder_with_code_of_its_own_is_refused(copied):
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(CheckpointError, match=r"code of its own \(auto_map\), which is never run\. Name another"):
        Encoder.load(late_checkpoint(copied))


@pytest.mark.parametrize("pickled", [True, False])
def test_weights_in_torchs_format_are_read_as_tensors_only(written, tmp_path, pickled):
    folder = Path(shutil.copytree(written["as colbert-ai writes"], tmp_path / "copy"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights | ({"trap": Trap()} if pickled else {}), folder / "pytorch_model.bin")
    if pickled:
        with pytest.raises(CheckpointError, match="cannot be loaded"):
            Encoder.load(late_checkpoint(folder))
    else:
        assert Encoder.load(late_checkpoint(folder)).dim == 32


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("the checkpoint was unpickled",))


@pytest.fixture
def texts():
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS[:8], k=length)) for length in (5, 2, 9, 5, 2, 30, 9, 5)]


@pytest.mark.parametrize(("precision", "batches"), [("float32", 4), ("bfloat16", 2)])
def test_on_a_cpu_nothing_is_padding_but_in_bfloat16(tiny_checkpoint, texts, monkeypatch, precision, batches):
    encoder = Encoder.load(late_checkpoint(tiny_checkpoint), precision)
    if encoder._model.device.type != "cpu":
        pytest.skip("there is a GPU, where some padding is cheaper than small batches")
    masks, embedded, done = [], encoder._embedded, []
    monkeypatch.setattr(encoder, "_embedded", lambda some: masks.append(some["attention_mask"]) or embedded(some))
    monkeypatch.setitem(encoders.TOKENS_A_BATCH, "cpu", 90)
    list(encoder.passages(texts, done.append))
    assert len(masks) == batches  # lengths: 2, 5, 9 and 30 words
    assert all(bool(mask.all()) for mask in masks) == (precision == "float32")
    assert sum(done) == len(texts)


@pytest.mark.parametrize("case", ["as colbert-ai writes", "as PyLate writes by default"])
def test_a_long_query_is_read_to_its_end(written, case):
    encoder = Encoder.load(late_checkpoint(written[case]))
    recollection = " ".join(["amber basin delta fjord"] * 5)  # longer than the query length of the checkpoint
    first, second = encoder.queries([f"{recollection} where is kelp", f"{recollection} where is grove"])
    assert first.shape == second.shape
    assert not torch.equal(first, second)
