"""Gather and rerank: candidates of BM25, in the order of MaxSim over packed embeddings."""

import shutil
from dataclasses import asdict

import pytest
import torch

from questree.common.errors import QuestreeError
from questree.retrieval import Passage, RerankSettings, add_to_index, build_index, load_index, read_manifest
from questree.retrieval.late_interaction import exact, rerank
from questree.retrieval.late_interaction.packed_rows import Packing
from questree.retrieval.late_interaction.rerank import FOLDER, maxsim

from .conftest import unit_rows

QUERY = "amber fjord willow summit"

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.mark.parametrize(("nbits", "cosine"), [(1, 0.78), (2, 0.93), (4, 0.993), (8, 0.999)])
@pytest.mark.parametrize("dim", [32, 96, 128])
def test_what_is_unpacked_is_near_what_was_packed(dim, nbits, cosine):
    rows, packing = unit_rows(500, dim), Packing(dim, nbits)
    packed = packing.packed(rows)
    assert packed.shape == (500, dim * nbits // 8)
    assert packed.dtype == torch.uint8
    unpacked = packing.unpacked(packed.numpy())
    assert torch.allclose(unpacked.norm(dim=1), torch.ones(500), atol=1e-5)
    assert (unpacked * rows).sum(1).mean() > cosine


def test_dimensions_that_fill_no_bytes_are_refused():
    with pytest.raises(QuestreeError, match=r"30 dimensions of 2 bits do not fill bytes.*--set nbits=8"):
        Packing(30, 2)


def test_a_score_is_the_sum_of_best_matches():
    query, rows, lengths = unit_rows(7, 8), unit_rows(12, 8), [3, 1, 8]
    by_hand = [float((query @ part.T).amax(1).sum()) for part in rows.split(lengths)]
    assert maxsim(query, rows, lengths).tolist() == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("together", [1, 7, 256])
def test_with_all_gathered_it_ranks_as_exact_search(exact_folder, index_of, passages, monkeypatch, together):
    monkeypatch.setattr(rerank, "_TOGETHER", together)
    index, exact = load_index(index_of("rerank")), load_index(exact_folder)
    held = [p.id for p in passages if {"amber", "fjord", "willow", "summit"} & set(p.shown().replace(".", "").split())]
    everything = {p.id: p.score for p in exact(QUERY, k=len(passages))}
    found = index(QUERY, k=len(passages))
    assert sorted(p.id for p in found) == sorted(p.id for p in passages if p.id in held or p.title in QUERY)
    assert [p.score for p in found] == pytest.approx([everything[p.id] for p in found], rel=0.05)
    assert found[0].id == next(id for id in everything if id in {p.id for p in found})


def test_no_more_are_read_than_are_gathered(index_of, monkeypatch):
    index = load_index(index_of("rerank"))
    read, of = [], index._embeddings.of
    monkeypatch.setattr(index._embeddings, "of", lambda position: read.append(position) or of(position))
    index.candidates = 9
    found = index(QUERY, k=3)
    assert len(read) == 9
    assert {p.id for p in found} <= {index.passages[position].id for position in read}
    assert read == sorted(read)  # in the order in which they lie on the disk
    read.clear()
    assert len(index(QUERY, k=20)) == len(read) == 20  # as many as are asked for


@pytest.mark.parametrize("kind", ["rerank", "exact"])
def test_an_index_that_was_replaced_goes_on_as_it_was(kind, passages, tiny_checkpoint, tmp_path, monkeypatch):
    """The other index has other embeddings at the same places."""
    monkeypatch.setattr(exact, "_HELD_BYTES", 0)
    how = {"kind": kind, "checkpoint": tiny_checkpoint}
    index = load_index(build_index(passages, tmp_path / "index", **how))
    expected = load_index(shutil.copytree(tmp_path / "index", tmp_path / "copy"))(QUERY, k=3)
    build_index(passages[::-1], tmp_path / "index", overwrite=True, **how)
    assert index(QUERY, k=3) == expected


@pytest.mark.parametrize("nbits", [1, 2, 8])
def test_settings_are_kept_and_followed(passages, tiny_checkpoint, tmp_path, nbits):
    settings = RerankSettings(candidates=5, nbits=nbits)
    out = build_index(passages, tmp_path / "index", kind="rerank", checkpoint=tiny_checkpoint, settings=settings)
    assert asdict(settings).items() <= read_manifest(out).settings.items()
    rows = sum(file.stat().st_size for file in (out / "version-1" / FOLDER).glob("*.npy"))
    assert rows % (32 * nbits // 8) == 128 % (32 * nbits // 8)
    add_to_index([Passage(id="new", title="new", text="amber")], out)
    assert asdict(settings).items() <= read_manifest(out).settings.items()
    assert load_index(out).candidates == 5
