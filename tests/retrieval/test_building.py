"""Indexes whose building is interrupted, repeated, raced, and added to."""

import errno
import random
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from questree.common.errors import CorpusError, IndexRefused, QuestreeError
from questree.retrieval import BuildProgress, Passage, build_index, load_index, read_manifest
from questree.retrieval.index_builder import add_to_index
from questree.retrieval.indexes import chunks
from questree.retrieval.late_interaction import plaid_writer

from .conftest import interrupted, stop_after

SIZE = 16

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", SIZE)


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of an index, but for the number of its version."""
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {re.sub(r"^version-\d+/", "", name): content for name, content in files.items()}


@pytest.fixture(scope="module")
def checkpoints(tiny_checkpoint, sentence_folder):
    """The checkpoint that a kind of index is built with."""
    return defaultdict(lambda: tiny_checkpoint, dense=sentence_folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, passages, checkpoints):
    """Index folders of uninterrupted builds, by kind."""
    at = tmp_path_factory.mktemp("whole")

    class Built(dict):
        def __missing__(self, kind):
            self[kind] = build_index(passages, at / kind, kind=kind, checkpoint=checkpoints[kind])
            return self[kind]

    return Built()


@pytest.mark.parametrize("kind", ["exact", "colbert", "rerank", "dense"])
def test_interrupted_anywhere_the_index_is_the_same(whole, passages, checkpoints, tmp_path, kind):
    out, draw = tmp_path / kind, random.Random(kind)
    for _ in range(2):
        with interrupted(draw.randrange(len(passages) // 3)):
            build_index(passages, out, kind=kind, checkpoint=checkpoints[kind])
        with pytest.raises(IndexRefused, match=r"is incomplete|no index at"):
            load_index(out)
    build_index(passages, out, kind=kind, checkpoint=checkpoints[kind])
    assert content(out) == content(whole[kind])
    assert [path.name for path in tmp_path.iterdir()] == [kind]


def test_what_was_encoded_is_kept_and_told(passages, tiny_checkpoint, tmp_path, monkeypatch):
    with interrupted(40, KeyboardInterrupt(), r"is kept in .*index/version-1: the same command goes on"):
        build_index(passages, tmp_path / "index", kind="exact", checkpoint=tiny_checkpoint)
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["version-1"]
    with pytest.raises(IndexRefused, match="is incomplete"):
        load_index(tmp_path / "index")
    told: list[BuildProgress] = []
    encoded = stop_after(monkeypatch, -1)
    build_index(passages, tmp_path / "index", kind="exact", checkpoint=tiny_checkpoint, progress=told.append)
    assert encoded == [len(passages) - 2 * SIZE]
    assert (told[-1].done, told[-1].kept) == (len(passages), 2 * SIZE)


def test_stopped_before_anything_is_encoded_it_leaves_nothing(passages, tiny_checkpoint, tmp_path, monkeypatch):
    with interrupted(3, KeyboardInterrupt(), "begin again"):
        build_index(passages, tmp_path / "index", kind="exact", checkpoint=tiny_checkpoint)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_what_is_encoded(whole, passages, tiny_checkpoint, tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with interrupted(40, full, r"cannot be written: No space left.*is kept in", QuestreeError):
        build_index(passages, tmp_path / "exact", kind="exact", checkpoint=tiny_checkpoint)
    build_index(passages, tmp_path / "exact", kind="exact", checkpoint=tiny_checkpoint)
    assert content(tmp_path / "exact") == content(whole["exact"])


def test_embeddings_are_kept_while_plaid_compresses(whole, passages, tiny_checkpoint, tmp_path, monkeypatch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plaid_writer, "passages_by_centroid", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            build_index(passages, tmp_path / "colbert", kind="colbert", checkpoint=tiny_checkpoint)
    encoded = stop_after(monkeypatch, -1)
    build_index(passages, tmp_path / "colbert", kind="colbert", checkpoint=tiny_checkpoint)
    assert encoded == [0]
    assert content(tmp_path / "colbert") == content(whole["colbert"])
    assert not (tmp_path / "colbert" / "version-1" / "embeddings").exists()


def test_what_a_build_of_another_kind_left_is_no_part_of_the_index(whole, passages, tiny_checkpoint, tmp_path):
    with interrupted(40):
        build_index(passages, tmp_path / "index", kind="exact", checkpoint=tiny_checkpoint)
    build_index(passages, tmp_path / "index", kind="bm25")
    assert content(tmp_path / "index") == content(whole["bm25"])


@pytest.mark.parametrize(
    ("kind", "first"), [("exact", 1), ("exact", SIZE), ("exact", 75), ("rerank", 75), ("dense", 75), ("bm25", 75)]
)
def test_adding_gives_what_a_rebuild_gives(whole, passages, checkpoints, tmp_path, monkeypatch, kind, first):
    out = build_index(passages[:first], tmp_path / kind, kind=kind, checkpoint=checkpoints[kind])
    encoded = stop_after(monkeypatch, -1)
    add_to_index(passages[first:], out)
    assert encoded == [len(passages) - first // SIZE * SIZE if kind != "bm25" else 0]
    added, rebuilt = content(out), content(whole[kind])
    manifests = [folder.pop("questree-index.json") for folder in (added, rebuilt)]
    assert added == rebuilt
    assert read_manifest(out).fingerprint == read_manifest(whole[kind]).fingerprint
    assert read_manifest(out).corpus.name == "passages + passages"
    assert b"passages + passages" in manifests[0]
    assert load_index(out)("amber basin", k=9) == load_index(whole[kind])("amber basin", k=9)


def test_adding_is_refused_where_a_rebuild_is_another(whole):
    with pytest.raises(QuestreeError, match="centroids are trained on the passages it holds"):
        add_to_index([Passage(id="new", text="amber")], whole["colbert"])


def test_adding_an_id_that_is_there_leaves_the_index_as_it_was(whole, tmp_path):
    out = shutil.copytree(whole["exact"], tmp_path / "exact")
    before = content(out)
    with pytest.raises(CorpusError, match="'p7'"):
        add_to_index([Passage(id="new", text="amber"), Passage(id="p7", text="amber")], out)
    (more := tmp_path / "more.jsonl").write_text('{"id": "new", "text": "x"}\n{"id": "p7", "text": "x"}\n')
    with pytest.raises(CorpusError, match=r"line 2: the id 'p7'"):
        add_to_index(more, out)
    assert content(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exact", "more.jsonl"]


def test_an_interrupted_addition_goes_on(whole, passages, tiny_checkpoint, tmp_path):
    out = build_index(passages[:30], tmp_path / "exact", kind="exact", checkpoint=tiny_checkpoint)
    with interrupted(40):
        add_to_index(passages[30:], out)
    assert len(load_index(out).passages) == 30
    with pytest.MonkeyPatch.context() as patch:
        encoded = stop_after(patch, -1)
        add_to_index(passages[30:], out)
    assert encoded == [len(passages) - 3 * SIZE]  # one chunk of the index, two of the interrupted run
    assert load_index(out).fingerprint == load_index(whole["exact"]).fingerprint


def test_lists_by_centroid_are_those_of_colbert(whole, tmp_path):
    from colbert.indexing.utils import optimize_ivf

    folder = shutil.copytree(whole["colbert"] / "version-1" / "plaid", tmp_path / "plaid")
    lists, counts = torch.load(folder / "ivf.pid.pt")
    codes = torch.load(folder / "0.codes.pt").long().sort()
    optimize_ivf(codes.indices, torch.bincount(codes.values, minlength=len(counts)), str(folder), verbose=0)
    expected, expected_counts = torch.load(folder / "ivf.pid.pt")
    assert torch.equal(counts, expected_counts)
    assert torch.equal(lists[: counts.sum()], expected[: counts.sum()])
    assert len(lists) >= counts.cumsum(0)[-2] + counts.max()  # colbert-ai reads so far


def test_an_index_does_not_tell_where_it_was_built(whole, tiny_checkpoint):
    text = (whole["colbert"] / "version-1" / "plaid" / "metadata.json").read_text()
    assert str(whole["colbert"].parent) not in text
    assert str(tiny_checkpoint) not in text


def test_passages_without_ids_are_numbered_on(tmp_path):
    (first := tmp_path / "first.jsonl").write_text('{"text": "amber one"}\n\n{"text": "amber two"}\n')
    (second := tmp_path / "second.jsonl").write_text('{"text": "amber three"}\n{"id": "x", "text": "amber four"}\n')
    build_index(first, tmp_path / "index", kind="bm25")
    for _ in range(2):
        add_to_index(second, tmp_path / "index")
        second.write_text('{"text": "amber five"}\n')
    passages = load_index(tmp_path / "index").passages
    assert [(one.id, one.text.split()[1]) for one in passages] == [
        *(("1", "one"), ("3", "two"), ("4", "three"), ("x", "four"), ("5", "five"))
    ]
