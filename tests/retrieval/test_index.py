import errno
import os
import re
import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from manifests import rewrite_manifest
from reliability.tiny_encoders import save_encoder

from questree.common.errors import CheckpointError, CorpusError, IndexRefused, QuestreeError
from questree.common.registry import settings_of
from questree.retrieval import (
    BM25Retriever,
    BM25Settings,
    DenseSettings,
    Passage,
    PlaidSettings,
    RerankSettings,
    Retriever,
    bm25,
    build_index,
    load_index,
    read_corpus,
    read_manifest,
)
from questree.retrieval.encoders import load_model
from questree.retrieval.index_folder import chosen_kind
from questree.retrieval.indexes import construction
from questree.retrieval.indexes.contents import NAME
from questree.retrieval.qdrant.layout import QdrantSettings


@pytest.fixture(scope="module")
def built(corpus_file, tmp_path_factory):
    return build_index(corpus_file, tmp_path_factory.mktemp("built") / "index", kind="bm25")


@pytest.fixture
def folder(built, tmp_path):
    """A copy of an index, to be spoilt."""
    return shutil.copytree(built, tmp_path / "index")


def test_an_index_holds_its_passages(built, passages):
    retriever = load_index(built)
    assert isinstance(retriever, Retriever)
    assert list(retriever.passages) == passages
    assert retriever(passages[5].text, k=1)[0].id == "p5"


def test_memory_and_folder_agree(built, passages):
    query = "fjord willow summit"
    assert BM25Retriever.from_passages(passages)(query, k=9) == load_index(built)(query, k=9)


def test_the_manifest_tells_what_it_was_made_from(built, passages):
    manifest = read_manifest(built)
    assert (manifest.kind, manifest.corpus.name, manifest.corpus.passages) == ("bm25", "corpus.jsonl", len(passages))
    assert {"version-1/passages.jsonl", "version-1/bm25/vocab.index.json"} <= set(manifest.files)
    assert "bm25s" in manifest.versions


def test_fingerprint_follows_corpus_and_settings(built, passages, tmp_path):
    same = build_index(iter(passages), tmp_path / "same", kind="bm25")
    other = build_index(passages[1:], tmp_path / "other", kind="bm25")
    assert load_index(same).fingerprint == load_index(built).fingerprint != load_index(other).fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "incomplete"),
        ("{", "damaged or foreign"),
        ({"kind": "psychic"}, "is foreign"),
        ({"settings": {"sharpness": 2}}, "is foreign"),
        ({"settings": {"b": 1.5}}, "is foreign"),
        ({"files": {"../../secret": {"bytes": 0, "sha256": ""}}}, "outside"),
    ],
)
def test_a_manifest_that_is_none_or_foreign_is_refused(folder, change, said):
    if change is None:
        (folder / NAME).unlink()
    elif isinstance(change, str):
        (folder / NAME).write_text(change)
    else:
        rewrite_manifest(folder, lambda manifest: manifest.update(change))
    with pytest.raises(IndexRefused, match=f"{re.escape(str(folder))}.*{said}"):
        load_index(folder)


@pytest.mark.parametrize(
    ("old", "new"), [("torch", "tohch"), ('"skipped"', '"skippet"'), ("corpus.jsonl", "korpus.jsonl"), ('"k1"', '"k2"')]
)
def test_a_changed_manifest_is_refused(folder, old, new):
    manifest = (folder / NAME).read_text()
    assert old in manifest
    (folder / NAME).write_text(manifest.replace(old, new, 1))
    with pytest.raises(IndexRefused, match=r"damaged: .*was changed"):
        load_index(folder)


def test_stale_is_refused(folder, passages, corpus_file):
    load_index(folder, corpus=corpus_file)
    with pytest.raises(IndexRefused, match=r"stale.*corpus"):
        load_index(folder, corpus=passages[:-1])


def test_missing_and_shortened_files_are_refused(folder):
    file = folder / "version-1" / "bm25" / "data.csc.index.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(IndexRefused, match=r"data\.csc.* is damaged: .* bytes"):
        load_index(folder)
    file.unlink()
    with pytest.raises(IndexRefused, match="missing"):
        load_index(folder)


def test_a_changed_byte_is_found_by_checksum(folder):
    file = folder / "version-1" / "passages.jsonl"
    file.write_bytes(file.read_bytes().replace(b"fjord", b"fiord"))
    load_index(folder, full_check=False)
    with pytest.raises(IndexRefused, match="checksum"):
        load_index(folder)


FULL = [  # what is raised, the bytes that are free while it is, and what is said
    (OSError(errno.EDQUOT, "Disk quota exceeded"), 1 << 30, "index cannot be written: Disk quota exceeded. Make room"),
    (OSError("558000 requested and 451552 written"), 0, r"cannot be written: the disk is full"),  # as numpy says it
    (OSError("558000 requested and 451552 written"), 1 << 30, "index cannot be written: 558000 requested"),
    (RuntimeError("file write failed"), 0, r"cannot be written: the disk is full"),  # as torch.save says it
    (RuntimeError("file write failed"), 1 << 30, "^file write failed$"),
]


@pytest.mark.parametrize(("problem", "free", "said"), FULL)
def test_a_full_disk_is_told_from_other_failures_and_leaves_nothing(
    problem, free, said, corpus_file, tmp_path, monkeypatch
):
    def usage(folder):  # what fills the disk is removed in the end
        return SimpleNamespace(free=free if folder.exists() and (folder / "version-1").exists() else 1 << 30)

    monkeypatch.setattr(bm25, "_built", Mock(side_effect=problem))
    monkeypatch.setattr(construction.shutil, "disk_usage", usage)
    with pytest.raises((QuestreeError, RuntimeError), match=said):
        build_index(corpus_file, tmp_path / "index", kind="bm25")
    assert list(tmp_path.iterdir()) == []


BAD = [
    (lambda passages, bad: bad, "line 2"),
    (lambda passages, bad: [*passages, Passage(id="p0", text="one")], "two passages of the id 'p0'"),
    (lambda passages, bad: [*passages, {"id": "d", "text": "one"}], r"A dict is no passage: give questree.Passage"),
]


@pytest.mark.parametrize(("corpus", "said"), BAD)
def test_a_bad_corpus_leaves_nothing(corpus, said, passages, tmp_path):
    (bad := tmp_path / "c.jsonl").write_text('{"text": "good"}\nbad\n')
    with pytest.raises(CorpusError, match=said):
        build_index(corpus(passages, bad), tmp_path / "index", kind="bm25")
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


def test_bad_lines_that_were_left_out_are_counted(tmp_path):
    (corpus := tmp_path / "c.jsonl").write_text('{"text": "good"}\nbad\n')
    built = build_index(read_corpus(corpus, skip_bad=True), tmp_path / "index", kind="bm25")
    assert (read_manifest(built).corpus.passages, read_manifest(built).corpus.skipped) == (1, 1)
    load_index(built, corpus=corpus)


def test_an_index_is_replaced_only_by_request(folder, corpus_file, passages):
    with pytest.raises(QuestreeError, match=r"already holds an index\. Choose"):
        build_index(passages[:10], folder, kind="bm25")
    build_index(passages[:10], folder, kind="bm25", overwrite=True)
    assert len(load_index(folder).passages) == 10


@pytest.mark.parametrize("again", [{}, {"settings": BM25Settings(), "kind": "bm25"}])
def test_the_same_call_leaves_a_finished_index_as_it_is(again, folder, corpus_file):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert build_index(corpus_file, folder, **{"kind": "bm25"} | again) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "other", [{"settings": BM25Settings(k1=0.9)}, {"kind": "exact"}, {"kind": "linked"}, {"kind": "auto"}]
)
def test_a_call_for_another_index_is_refused(other, folder, corpus_file):
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(corpus_file, folder, **{"kind": "bm25"} | other)


@pytest.mark.parametrize("place", ["letter.txt", "version-1/letter.txt"])
def test_a_folder_of_the_users_own_is_left_alone(place, corpus_file, tmp_path):
    (letter := tmp_path / "mine" / place).parent.mkdir(parents=True)
    letter.write_text("dear")
    with pytest.raises(QuestreeError, match="is no index of questree's: it is left as it is"):
        build_index(corpus_file, tmp_path / "mine", kind="bm25", overwrite=True)
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [letter]


def test_auto_is_exact_search_in_small_corpora_and_gathers_in_large_ones():
    chosen = [chosen_kind("auto", count).name for count in (1, 5_000, 5_001, 10**8)]
    assert chosen == ["exact", "exact", "rerank", "rerank"]


WRONG = [
    *((BM25Settings, values) for values in ({"k1": -1}, {"k1": "nan"}, {"b": 5})),
    *((PlaidSettings, values) for values in ({"ncells": 0}, {"nbits": 3})),
    *((RerankSettings, values) for values in ({"candidates": 0}, {"nbits": 3})),
    *((QdrantSettings, values) for values in ({"candidates": 0}, {"shards": 0}, {"replicas": -1})),
    *((QdrantSettings, {"quantization": "int4"}), (DenseSettings, {"sample": -3})),
]


@pytest.mark.parametrize(("kind", "values"), WRONG)
def test_a_setting_that_means_nothing_is_refused(kind, values):
    with pytest.raises(QuestreeError, match=f"{next(iter(values))}=.* does not fit: Input should be"):
        settings_of("a kind", kind, values)


def test_there_is_no_passage_beyond_the_last(built, passages):
    for nowhere in (-1, len(passages)):
        with pytest.raises(IndexError, match=f"no passage {nowhere}"):
            load_index(built).passages[nowhere]


@pytest.mark.parametrize("kept", [0, 4, 100, 1000])
def test_weights_that_were_cut_short_are_refused(tmp_path, kept):
    folder = save_encoder(tmp_path / "encoder")
    os.truncate(folder / "model.safetensors", kept)
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        load_model("AutoModel", folder)
