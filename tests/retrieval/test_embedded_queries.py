"""Queries of the embedded checkpoint without the libraries that take seconds to import."""

import shutil
from dataclasses import replace

import pytest
import torch

from questree.common.errors import CheckpointError
from questree.data import MINI_CORPUS
from questree.retrieval import build_index, load_index, read_corpus
from questree.retrieval.late_interaction.checkpoint import find_checkpoint
from questree.retrieval.late_interaction.embedded_queries import EmbeddedQueries
from questree.retrieval.late_interaction.encoder import Encoder

pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_embeddings_are_those_of_the_library(caplog):
    queries = ["Who wrote Ulysses?", "Joyce", "an [SEP] in it, Zürich; 東京?", "river " * 600]
    checkpoint = find_checkpoint()
    light, whole = EmbeddedQueries(checkpoint), Encoder.load(checkpoint)
    assert (light.dim, light.longest_query) == (whole.dim, whole.longest_query)
    for ours, theirs in zip(light.queries(queries), whole.queries(queries), strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert "longer than the 512" in caplog.text
    assert torch.equal(next(light.passages(["Dublin"])), next(whole.passages(["Dublin"])))


def test_a_search_needs_no_more_than_torch(tmp_path, monkeypatch):
    passages = list(read_corpus(MINI_CORPUS))[:4]
    folder = build_index(passages, tmp_path / "index", kind="exact")
    monkeypatch.setattr(Encoder, "load", lambda *_: pytest.fail("the whole encoder was loaded"))
    assert load_index(folder)(f"{passages[3].title} {passages[3].text}", k=1)[0].id == passages[3].id


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path):
    found = find_checkpoint()
    folder = shutil.copytree(found.folder, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="damaged cannot be loaded"):
        EmbeddedQueries(replace(found, folder=folder))
