"""Workers on a Ray cluster: what they encode is what one process does, also if some of them are killed."""

from functools import partial

import pytest
from chunk_encoder import LetterEncoder, load, load_dying
from ray_cluster import cluster_of_two

from questree.retrieval import Passage
from questree.retrieval.indexes import chunks
from questree.retrieval.indexes.cluster import connected
from questree.retrieval.indexes.contents import PassageStore, write_passages
from questree.retrieval.indexes.encoding import encode_corpus
from questree.retrieval.indexes.index_kind import Order

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cluster(cache):
    with cluster_of_two(cache) as ray:
        yield ray


def chunks_of(folder, count, load, cluster=None):
    folder.mkdir()
    write_passages(folder, (Passage(id=str(n), text="ab" * n + f" {n}") for n in range(count)))
    encode_corpus(Order(folder, PassageStore(folder), cluster=cluster), "chunks", LetterEncoder(), "letters", load)
    return {path.name: path.read_bytes() for path in (folder / "chunks").iterdir()}


def test_two_workers_encode_as_one_process_does_also_if_one_is_lost(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 8)
    (tmp_path / "marks").mkdir()
    mortal = partial(load_dying, 8, str(tmp_path / "marks"), " 20", 1)
    with connected("ray", workers=2) as found:
        shared = chunks_of(tmp_path / "shared", 43, mortal, found)
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert shared == chunks_of(tmp_path / "alone", 43, partial(load, 8))
