"""PLAID through colbert-ai: what is stored, what is searched, and what the process keeps."""

import os
import random
from types import SimpleNamespace

import pytest
import torch

from questree.common.errors import QuestreeError
from questree.retrieval import BuildProgress, PlaidSettings, build_index, load_index, read_manifest
from questree.retrieval.late_interaction import colbert_ai, plaid, plaid_scorer, plaid_writer
from questree.retrieval.late_interaction.colbert_ai import colbert_ready
from questree.retrieval.late_interaction.packed_rows import lloyd_max
from questree.retrieval.late_interaction.plaid_writer import make_codec

from .conftest import unit_rows


def config(dim: int, nbits: int) -> SimpleNamespace:
    return SimpleNamespace(dim=dim, nbits=nbits, rank=0, total_visible_gpus=0)


def test_buckets_are_those_that_lose_least():
    cutoffs, means = lloyd_max(torch.tensor([0.0, 1, 2, 10, 11, 12, 100]), 3)
    assert means.tolist() == [1, 11, 100]
    assert cutoffs.tolist() == [6, 55.5]


def test_more_buckets_than_values():
    cutoffs, means = lloyd_max(torch.tensor([2.0, 2.0, 3.0]), 8)
    assert torch.equal(means[torch.bucketize(torch.tensor([2.0, 3.0]), cutoffs)], torch.tensor([2.0, 3.0]))


@pytest.mark.parametrize("nbits", [1, 2, 4, 8])
def test_the_codec_stores_what_colbert_stores(nbits):
    rows, centroids = unit_rows(300, 64, seed=2), unit_rows(32, 64, seed=3)
    with colbert_ready():
        from colbert.indexing.codecs.residual import ResidualCodec

        ours = make_codec(config(64, nbits), centroids, rows)
        theirs = ResidualCodec(
            config(64, nbits), centroids, ours.avg_residual, ours.bucket_cutoffs, ours.bucket_weights
        )
        stored, expected = ours.compress(rows), theirs.compress(rows)
    assert torch.equal(stored.codes, expected.codes)
    assert torch.equal(stored.residuals, expected.residuals)
    tables = (ours.bucket_weights, ours.reversed_bit_map, ours.decompression_lookup_table)
    unpacked = colbert_ai.decompressed(stored.residuals, *tables, stored.codes, ours.centroids)
    assert torch.equal(torch.nn.functional.normalize(unpacked, dim=1), theirs.decompress(stored))
    assert ours.avg_residual == pytest.approx(float((rows - centroids[stored.codes.long()]).abs().mean()))


def test_more_bits_lose_less_also_where_colbert_cannot_pack():
    rows, centroids = unit_rows(400, 24, seed=2), unit_rows(8, 24, seed=3)
    with colbert_ready():
        codecs = [make_codec(config(24, nbits), centroids, rows[:200]) for nbits in (1, 2, 4, 8)]
        similar = [float((codec.decompress(codec.compress(rows)) * rows).sum(1).mean()) for codec in codecs]
    assert similar == sorted(similar)
    assert similar[-1] > 0.999


def test_dimensions_that_do_not_pack_are_refused(tmp_path):
    class Odd(list):
        dim = 30

    with pytest.raises(QuestreeError, match=r"cannot pack 30 dimensions.*--kind exact"):
        plaid_writer.write_plaid(tmp_path / "plaid", Odd(), PlaidSettings())
    assert not (tmp_path / "plaid").exists()


def test_plaid_refuses_a_corpus_too_small_for_it(tiny_checkpoint, passages, tmp_path):
    with pytest.raises(QuestreeError, match=r"too few for PLAID.*--kind exact"):
        build_index(passages[:5], tmp_path / "index", kind="colbert", checkpoint=tiny_checkpoint)
    told: list[BuildProgress] = []
    build_index(passages[:5], tmp_path / "index", kind="exact", checkpoint=tiny_checkpoint, progress=told.append)
    assert told[-1].kept == 5  # what was encoded for PLAID serves
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_plaid_indexes_stored_embeddings_and_leaves_the_process_alone(
    tiny_checkpoint, passages, tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    random.seed(5)
    next_number = random.Random(5).random()
    capfd.readouterr()
    folder = build_index(passages, tmp_path / "index", kind="colbert", checkpoint=tiny_checkpoint)
    assert {f"version-1/plaid/{name}.pt" for name in ("0.codes", "centroids", "ivf.pid")} <= set(
        read_manifest(folder).files
    )
    assert not (folder / "version-1" / "embeddings").exists()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    assert "TOKENIZERS_PARALLELISM" not in os.environ
    assert random.random() == next_number
    assert capfd.readouterr().out == ""


def test_candidates_are_looked_for_with_the_whole_query():
    encoder = SimpleNamespace(longest_query=8192, similarity=None)
    retriever = plaid.PlaidRetriever([], "", encoder, scorer=None, settings=PlaidSettings())
    with colbert_ready():
        assert retriever._config(k=5, cells=4).query_maxlen == 8192


def test_plaid_searches_like_exact(tiny_checkpoint, passages, tmp_path, exact_folder):
    settings = PlaidSettings(ncells=1)
    folder = build_index(passages, tmp_path / "index", kind="colbert", checkpoint=tiny_checkpoint, settings=settings)
    index, exact = load_index(folder), load_index(exact_folder)
    queries = [p.text for p in passages[:30]]
    shared = []
    for found, expected in zip(index.batch(queries, 5), exact.batch(queries, len(passages)), strict=True):
        shared.append(len({p.id for p in found} & {p.id for p in expected[:5]}) / 5)
        scores = {p.id: p.score for p in expected}
        assert [p.score for p in found] == pytest.approx([scores[p.id] for p in found], rel=0.01)
    assert sum(shared) / len(shared) > 0.95
    assert len(index("amber", k=1)) == 1
    assert len(index("amber", k=10_000)) == len(passages)  # more than the probed cells hold


def pruned_slowly(candidates, codes, starts, lengths, scores, near, count):
    """Return the best candidates as colbert-ai's ``filter_pids`` finds them: code by code."""
    sums = []
    for passage in candidates.tolist():
        held = {code for code in codes[starts[passage] : starts[passage] + lengths[passage]].tolist() if near[code]}
        best = [max([-9999.0, *(float(scores[code, token]) for code in held)]) for token in range(scores.shape[1])]
        sums.append((sum(best), passage))
    return [passage for _, passage in sorted(sums, reverse=True)[:count]]


@pytest.mark.parametrize("together", [8, 1 << 21])
@pytest.mark.parametrize("share", [0, 0.05, 0.4])
def test_candidates_are_pruned_as_by_reading_all_their_codes(monkeypatch, together, share):
    """Scores are multiples of 1/8, so that sums are exact and many are equal."""
    monkeypatch.setattr(plaid_scorer, "_NUMBERS_TOGETHER", together)
    draw = torch.Generator().manual_seed(4)
    passages, centroids, tokens = 200, 64, 5
    lengths = torch.randint(1, 12, (passages,), generator=draw)
    starts = lengths.cumsum(0) - lengths
    codes = torch.randint(0, centroids, (int(lengths.sum()),), generator=draw, dtype=torch.int32)
    scores = torch.randint(-8, 8, (centroids, tokens), generator=draw) / 8
    near = torch.rand(centroids, generator=draw) < share
    of_passages = [set(of_one.tolist()) for of_one in codes.tensor_split(starts[1:])]
    holders = [
        torch.tensor([n for n, held in enumerate(of_passages) if centroid in held], dtype=torch.int32)
        for centroid in near.nonzero().flatten().tolist()
    ]
    candidates = torch.randperm(passages, generator=draw)[:120].sort().values.int()
    listed = torch.cat([*holders, torch.empty(0, dtype=torch.int32)])
    sizes = torch.tensor([len(one) for one in holders], dtype=torch.int64)
    first = plaid_scorer.by_lists(candidates, listed, sizes, scores[near], passages)
    assert plaid_scorer.best_of(candidates, first, 40).tolist() == pruned_slowly(
        candidates, codes, starts, lengths, scores, near, 40
    )


def test_rows_are_looked_up_and_their_maxima_summed():
    rows = torch.arange(10.0).view(5, 2) - 5
    found = colbert_ai.looked_up(rows, None, torch.tensor([2, 1]), torch.tensor([3, 0]))
    assert torch.equal(found, rows[[3, 4, 0]])
    assert plaid_scorer.sum_of_maxima(found, torch.tensor([2, 1])).tolist() == [7, 0]  # no maximum is below 0
