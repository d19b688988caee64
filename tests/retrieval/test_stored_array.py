"""Indexes that are cut short while they are searched, and the arrays that they are read from."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_encoders import save_encoder

from questree.common.errors import CheckpointError, IndexRefused
from questree.retrieval import build_index, load_index
from questree.retrieval.encoders import load_model
from questree.retrieval.indexes import stored_array
from questree.retrieval.indexes.contents import OFFSETS, PASSAGES
from questree.retrieval.indexes.stored_array import StoredArray
from questree.retrieval.late_interaction import exact
from questree.retrieval.span_model import SpanModel

QUERY = "amber fjord willow summit"


@pytest.fixture(scope="module")
def bm25(passages, tmp_path_factory):
    return build_index(passages, tmp_path_factory.mktemp("bm25") / "index", kind="bm25")


@pytest.mark.parametrize("file", ["bm25/data.csc.index.npy", "bm25/indices.csc.index.npy", PASSAGES, OFFSETS])
@pytest.mark.parametrize("kept", [0, 0.5])
def test_an_index_that_is_cut_short_is_refused_in_the_middle_of_its_use(bm25, tmp_path, file, kept):
    index = load_index(shutil.copytree(bm25, tmp_path / "index"))
    index(QUERY, k=5)
    os.truncate(tmp_path / "index" / file, int((tmp_path / "index" / file).stat().st_size * kept))
    with pytest.raises(IndexRefused, match=rf"{file} is damaged: it was cut short while it was in use; build it again"):
        [index(f"{QUERY} ", k=6), list(index.passages)]


def test_what_is_held_in_memory_is_not_lost(bm25, tmp_path):
    index = load_index(shutil.copytree(bm25, tmp_path / "index"))
    for file in (tmp_path / "index").rglob("*"):
        if file.suffix == ".json" or "indptr" in file.name:
            os.truncate(file, 0)
    assert index(QUERY, k=5) == load_index(bm25)(QUERY, k=5)


def test_embeddings_that_are_cut_short_are_refused(exact_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "_HELD_BYTES", 0)
    folder = shutil.copytree(exact_folder, tmp_path / "index")
    index = load_index(folder)
    assert index(QUERY, k=5) == load_index(exact_folder)(QUERY, k=5)
    os.truncate(folder / "embeddings" / "000000.f16", 100)
    with pytest.raises(IndexRefused, match=r"000000\.f16 is damaged: it was cut short"):
        index("harbor", k=5)
    with pytest.raises(IndexRefused, match=r"000000\.f16 is damaged: it has 100 bytes"):
        load_index(folder, full_check=False)


def test_passages_that_are_none_are_refused(bm25, tmp_path):
    folder = shutil.copytree(bm25, tmp_path / "index")
    whole = (folder / PASSAGES).read_bytes()
    (folder / PASSAGES).write_bytes(whole.replace(b'"', b"[")[: len(whole)])
    index = load_index(folder, full_check=False)
    with pytest.raises(IndexRefused, match="its passage 3 cannot be read"):
        index.passages[3]
    for nowhere in (-1, len(index.passages)):
        with pytest.raises(IndexError, match=f"no passage {nowhere}"):
            index.passages[nowhere]


def saved(folder: Path, array: np.ndarray, **how) -> Path:
    np.save(folder / "a.npy", array, **how)
    return folder / "a.npy"


@pytest.mark.parametrize("positional", [True, False])
@pytest.mark.parametrize("shape", [(0,), (7,), (7, 3), (5, 2, 2)])
def test_slices_are_those_of_the_array(tmp_path, monkeypatch, shape, positional):
    if not positional:
        monkeypatch.delattr(os, "preadv")
    array = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    stored = StoredArray.of_npy(saved(tmp_path, array))
    assert (len(stored), stored.shape) == (len(array), shape)
    for part in (
        slice(None),
        slice(2, 5),
        slice(5, 2),
        slice(-2, None),
        slice(3, 100),
        slice(np.int64(1), np.int64(2)),
    ):
        assert np.array_equal(stored[part], array[part])
        assert stored[part].dtype == array.dtype


def test_what_comes_in_pieces_is_read_whole(tmp_path, monkeypatch):
    stored = StoredArray.of_npy(saved(tmp_path, np.arange(100)))
    monkeypatch.setattr(stored_array, "_read", lambda file, room, at: os.preadv(file, [room[:7]], at))
    assert np.array_equal(stored[10:90], np.arange(10, 90))


def test_files_that_are_no_array_are_refused(tmp_path):
    objects = saved(tmp_path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="objects"):
        StoredArray.of_npy(objects)
    with pytest.raises(ValueError, match="do not lie in order"):
        StoredArray.of_npy(saved(tmp_path, np.asfortranarray(np.ones((3, 4)))))
    whole = saved(tmp_path, np.arange(100))
    os.truncate(whole, 300)
    with pytest.raises(ValueError, match="mmap length"):
        StoredArray.of_npy(whole)
    with pytest.raises(ValueError, match="it has 300 bytes of 400"):
        StoredArray(whole, "i4", (100,))


def test_an_index_that_is_dropped_closes_its_files(bm25):
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    indexes = [load_index(bm25) for _ in range(3)]
    assert len(os.listdir("/dev/fd")) == before + 3 * 4
    del indexes
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="where a process says which files it has mapped")
def test_no_weights_stay_mapped_from_their_file(tmp_path):
    """A file that is cut short while it is mapped ends the process (SIGBUS), and no error tells why."""
    folder = save_encoder(tmp_path / "encoder")
    model, tokenizer, _ = load_model("AutoModel", folder, device="cpu")
    reader, _ = SpanModel.on_encoder(folder, device="cpu")
    reader.save(tmp_path / "reader", tokenizer)
    reader, _ = SpanModel.load(tmp_path / "reader", device="cpu")
    mapped = Path("/proc/self/maps").read_text()
    assert str(tmp_path) not in mapped
    assert next(model.parameters()).isfinite().all()
    assert next(reader.module.parameters()).isfinite().all()


@pytest.mark.parametrize("kept", [0, 4, 100, 1000])
def test_weights_that_were_cut_short_are_refused(tmp_path, kept):
    folder = save_encoder(tmp_path / "encoder")
    os.truncate(folder / "model.safetensors", kept)
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        load_model("AutoModel", folder, device="cpu")
