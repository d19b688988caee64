"""Dense retrieval: how an encoder is used, what is searched, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from questree.common.errors import CheckpointError, IndexRefused, QuestreeError
from questree.retrieval import DenseSettings, Passage, build_index, encoders, load_index, read_manifest
from questree.retrieval.sentence_encoder import SentenceEncoder, Usage, find_sentence_checkpoint, find_usage


def encoder(folder: Path, **usage) -> SentenceEncoder:
    return SentenceEncoder(find_sentence_checkpoint(folder), Usage(**usage), "float32")


@pytest.fixture(scope="module")
def by_hand(sentence_folder):
    """The last layer's (tokens, dim) of one text alone."""
    tokenizer = AutoTokenizer.from_pretrained(sentence_folder)
    model = AutoModel.from_pretrained(sentence_folder).eval()

    def tokens(text: str):
        read = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            return model(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).last_hidden_state[0]

    return tokens


# Searching


def test_scores_are_products_of_all_vectors(dense, by_hand, passages):
    query = torch.nn.functional.normalize(by_hand("harbor pebble").mean(0), dim=0)
    vectors = [torch.nn.functional.normalize(by_hand(p.shown()).mean(0), dim=0) for p in passages]
    expected = {p.id: float(query @ v) for p, v in zip(passages, vectors, strict=True)}
    found = {p.id: p.score for p in dense("harbor pebble", k=1_000)}
    assert found == pytest.approx(expected, abs=2e-3)  # they are kept in half precision


def test_the_embedded_encoder_needs_no_words_in_common(tmp_path):
    corpus = [
        Passage(id="cat", text="The kitten slept on the sofa."),
        Passage(id="bank", text="The central bank raised interest rates."),
        Passage(id="ship", text="The vessel left the harbour at dawn."),
    ]
    retriever = load_index(build_index(corpus, tmp_path / "index", kind="dense"))
    asked = ["a sleeping cat on the couch", "monetary policy", "a boat at sea"]
    assert [found[0].id for found in retriever.batch(asked)] == ["cat", "bank", "ship"]
    assert read_manifest(tmp_path / "index").checkpoint.name == "embedded"
    assert read_manifest(tmp_path / "index").settings["window"] == 256  # as its folder says


# faiss


@pytest.mark.parametrize(
    ("factory", "search"),
    [("SQfp16", ""), ("IVF4,Flat", "nprobe=4"), ("HNSW16", "efSearch=200"), ("IVF4,SQ8", "nprobe=4")],
)
def test_other_indexes_of_faiss_find_much_the_same(factory, search, dense, sentence_folder, passages, tmp_path):
    settings = DenseSettings(factory=factory, search=search)
    folder = build_index(passages, tmp_path / "i", kind="dense", checkpoint=sentence_folder, settings=settings)
    other = load_index(folder)
    assert other.fingerprint != dense.fingerprint
    for passage in passages[:10]:
        expected = {p.id for p in dense(passage.text, k=10)}
        assert len(expected & {p.id for p in other(passage.text, k=10)}) >= 8


def test_a_search_parameter_reaches_the_index(sentence_folder, passages, tmp_path):
    settings = DenseSettings(factory="IVF60,Flat", search="nprobe=1")
    folder = build_index(passages, tmp_path / "i", kind="dense", checkpoint=sentence_folder, settings=settings)
    found = load_index(folder)("amber", k=100)
    assert 0 < len(found) < 60  # one list of sixty holds no hundred passages, and -1 is none


@pytest.mark.parametrize(
    "settings",
    [DenseSettings(factory="Flatt"), DenseSettings(factory="IVF500,Flat"), DenseSettings(search="nprob=3")],
    ids=["no such index", "more lists than passages", "no such parameter"],
)
def test_what_faiss_cannot_make_is_refused(settings, sentence_folder, passages, tmp_path):
    with pytest.raises(QuestreeError, match=r"faiss makes no index.*Choose another"):
        build_index(passages, tmp_path / "i", kind="dense", checkpoint=sentence_folder, settings=settings)
    assert not (tmp_path / "i" / "questree-index.json").exists()


@pytest.mark.parametrize("window", [-1, 0, 2, 100_000])
def test_a_window_that_the_encoder_has_not_is_refused(window, sentence_folder, passages, tmp_path):
    settings = DenseSettings(window=window)
    with pytest.raises(QuestreeError, match=rf"reads 3 to \d+ tokens of a text, not {window}"):
        build_index(passages, tmp_path / "i", kind="dense", checkpoint=sentence_folder, settings=settings)


# The index folder


def test_another_encoder_than_the_index_was_built_with_is_refused(sentence_folder, passages, tmp_path):
    folder = build_index(passages[:9], tmp_path / "index", kind="dense", checkpoint=sentence_folder)
    other = shutil.copytree(sentence_folder, tmp_path / "other")
    (other / "config.json").write_text((other / "config.json").read_text() + " ")
    with pytest.raises(IndexRefused, match=r"stale.*say where the former one is now: load_index.*checkpoint="):
        load_index(folder, checkpoint=other)
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(passages[:9], folder, kind="dense", checkpoint=other)
    moved = shutil.copytree(sentence_folder, tmp_path / "moved")
    assert load_index(folder, checkpoint=moved)("amber", k=1)
    assert build_index(passages[:9], folder, kind="dense", checkpoint=moved) == folder  # the same one: it is there


# How an encoder is used


def test_pooling_norm_and_prefixes_make_the_vector(sentence_folder, by_hand):
    tokens = by_hand("north amber lagoon")
    mean = encoder(sentence_folder, normalised=False, query_prefix="north ").queries(["amber lagoon"])[0]
    assert torch.allclose(mean, tokens.mean(0), atol=1e-5)
    first = encoder(sentence_folder, normalised=False, pooling="cls", passage_prefix="north ")
    assert torch.allclose(next(first.passages(["amber lagoon"]))[0].float(), tokens[0], atol=2e-3)
    unit = encoder(sentence_folder, query_prefix="north ").queries(["amber lagoon"])[0]
    assert torch.allclose(unit, mean / mean.norm(), atol=1e-5)


def test_a_vector_does_not_depend_on_company(sentence_folder, passages, monkeypatch):
    alone, together = encoder(sentence_folder), encoder(sentence_folder)
    texts = [passage.shown() for passage in passages[:40]]
    expected = list(together.passages(texts))
    monkeypatch.setitem(encoders.TOKENS_A_BATCH, "cpu", 1)
    for one, other in zip(alone.passages(texts), expected, strict=True):
        assert one.shape == other.shape == (1, 32)
        assert (one - other).abs().max() < 2e-3


def test_a_precision_that_the_device_has_not_is_refused(sentence_folder):
    with pytest.raises(QuestreeError, match="int8 on"):
        SentenceEncoder(find_sentence_checkpoint(sentence_folder), Usage(), "int8")


E5 = {"query_prefix": "query: ", "passage_prefix": "passage: "}
INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
BGE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("facebook/contriever", Usage(normalised=False)),
        ("facebook/contriever-msmarco", Usage(normalised=False)),
        ("intfloat/e5-base-v2", Usage(**E5)),
        ("intfloat/multilingual-e5-large", Usage(**E5)),
        ("/models/e5-small", Usage(**E5)),
        ("intfloat/multilingual-e5-large-instruct", Usage(query_prefix=INSTRUCTION)),
        ("BAAI/bge-small-en-v1.5", Usage(pooling="cls", query_prefix=BGE)),
        ("sentence-transformers/multi-qa-mpnet-base-dot-v1", Usage(normalised=False)),
        ("somebody/encoder", Usage()),
    ],
)
def test_known_encoders_are_used_as_their_cards_say(name, usage, tmp_path):
    assert find_usage(name, tmp_path) == usage


def write_modules(folder: Path, pooling: dict, *further: str) -> None:
    kinds = {"": "Transformer", "1_Pooling": "Pooling", **{f"{n}_{kind}": kind for n, kind in enumerate(further, 2)}}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def test_a_sentence_transformers_folder_says_how_it_is_used(tmp_path):
    write_modules(tmp_path, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "Normalize")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    (tmp_path / "tokenizer_config.json").write_text(f'{{"model_max_length": {10**30}}}')
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: ", "document": "d: "}}')
    found = Usage(pooling="cls", query_prefix="q: ", passage_prefix="d: ", window=128)
    assert find_usage("e5-base", tmp_path) == found
    assert find_usage("e5-base", tmp_path, pooling="mean", query_prefix="", window=None) == Usage(
        passage_prefix="d: ", window=128
    )


def test_without_a_norm_and_for_products_vectors_are_left_as_they_are(tmp_path):
    write_modules(tmp_path, {"pooling_mode_mean_tokens": True})
    assert find_usage("encoder", tmp_path).normalised
    (tmp_path / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    assert not find_usage("encoder", tmp_path).normalised


def test_what_cannot_be_done_here_is_refused(tmp_path):
    write_modules(tmp_path, {"pooling_mode_max_tokens": True})
    with pytest.raises(CheckpointError, match="pooling by max_tokens"):
        find_usage("encoder", tmp_path)
    assert find_usage("encoder", tmp_path, pooling="mean").pooling == "mean"
    write_modules(tmp_path, {"pooling_mode_mean_tokens": True}, "Dense")
    with pytest.raises(CheckpointError, match="Dense"):
        find_usage("encoder", tmp_path)
    (tmp_path / "modules.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"modules\.json is no file"):
        find_usage("encoder", tmp_path)
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"modules\.json cannot be read"):
        find_usage("encoder", tmp_path)
