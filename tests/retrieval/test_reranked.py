"""A cross-encoder's logit, or late interaction with passages encoded then, is the order; models are tiny and random."""

import pytest
import torch
from fakes import GivingRetriever
from reliability.tiny_encoders import save_encoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig

from questree.common.errors import CheckpointError, QueryError
from questree.retrieval import Passage, build_index, load_index
from questree.retrieval.reranked import RerankedRetriever

from .conftest import make_checkpoint

WORDS = ("basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jetty", "kelp", "lagoon")
PASSAGES = [
    Passage(id=str(n), title=word, text=f"the {word} lies at water {' sand' * n}") for n, word in enumerate(WORDS)
]


def saved(folder, seed=0, logits=1):
    save_encoder(folder)  # for its tokenizer
    config = BertConfig.from_pretrained(folder, num_labels=logits)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("reranker"))


def logit(folder, query, passage):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return float(model(**tokenizer(query, passage.shown(), return_tensors="pt")).logits[0, 0])


def test_passages_stand_in_the_order_of_their_logits(folder):
    reranked = RerankedRetriever.load(GivingRetriever(PASSAGES), folder)
    found = reranked("where is the island", k=4)
    expected = {one.id: logit(folder, "where is the island", one) for one in PASSAGES}
    assert [one.id for one in found] == sorted(expected, key=lambda id: -expected[id])[:4]
    assert [one.score for one in found] == pytest.approx(sorted(expected.values(), reverse=True)[:4], abs=1e-5)


def test_single_calls_and_a_batch_are_the_same_and_only_candidates_are_read(folder):
    table = GivingRetriever(PASSAGES)
    reranked = RerankedRetriever.load(table, folder, candidates=5)
    queries = ["where is the island", "which tree"]
    assert reranked.batch(queries, k=3) == [reranked(query, k=3) for query in queries]
    assert {int(one.id) for one in reranked("water", k=5)} == {0, 1, 2, 3, 4}
    assert len(reranked("water", k=7)) == 7
    assert [k for _, k in table.asked] == [5, 5, 5, 5, 7]


def test_of_equal_passages_the_retriever_s_better_one_comes_first(folder):
    twins = [PASSAGES[0].model_copy(update={"id": id}) for id in "abc"]
    assert [one.id for one in RerankedRetriever.load(GivingRetriever(twins), folder)("water", k=3)] == ["a", "b", "c"]
    assert RerankedRetriever.load(GivingRetriever([]), folder)("water", k=3) == []


def test_a_long_passage_is_cut_and_a_bad_query_refused(folder):
    reranked = RerankedRetriever.load(GivingRetriever([Passage(id="l", text="water " * 500)]), folder)
    assert len(reranked("water " * 500, k=1)) == 1
    for query, k in [(" ", 1), ("water", 0)]:
        with pytest.raises(QueryError):
            reranked(query, k=k)


def test_the_fingerprint_follows_from_index_weights_and_candidates(folder, tiny_checkpoint, tiny_config, tmp_path):
    other = GivingRetriever(PASSAGES)
    other.fingerprint = "table-2"
    made = [
        RerankedRetriever.load(GivingRetriever(PASSAGES), folder),
        RerankedRetriever.load(other, folder),
        RerankedRetriever.load(GivingRetriever(PASSAGES), folder, candidates=9),
        RerankedRetriever.load(GivingRetriever(PASSAGES), saved(tmp_path / "b", seed=1)),
        RerankedRetriever.load(GivingRetriever(PASSAGES), f"colbert:{tiny_checkpoint}"),
        RerankedRetriever.load(GivingRetriever(PASSAGES), f"colbert:{make_checkpoint(tmp_path, tiny_config, seed=2)}"),
    ]
    assert len({"table-1", *(one.fingerprint for one in made)}) == 7
    assert made[0].fingerprint == RerankedRetriever.load(GivingRetriever(PASSAGES), folder).fingerprint


def test_a_model_of_two_logits_is_refused_by_name(tmp_path):
    with pytest.raises(CheckpointError, match="gives 2 logits"):
        RerankedRetriever.load(GivingRetriever(PASSAGES), saved(tmp_path / "two", logits=2))


def test_a_command_searches_through_the_reranker_that_it_names(folder, questree):
    options = ("--limit", "2", "--tracking-uri", "none", "--out", "run", "--rerank", folder)
    ran = questree("evaluate", "oner", *options)
    assert ran.code == 0, ran.err
    ran = questree("evaluate", "oner", *options[:-2])
    assert ran.code == 2, "another retriever is another run"


def test_late_interaction_ranks_as_an_exact_index_without_storing_anything(tiny_checkpoint, tmp_path):
    exact = load_index(build_index(PASSAGES, tmp_path / "exact", kind="exact", checkpoint=tiny_checkpoint))
    reranked = RerankedRetriever.load(GivingRetriever(PASSAGES), f"colbert:{tiny_checkpoint}")
    for query in ("where is the island", "the lagoon or the fjord"):
        expected = exact(query, k=len(PASSAGES))
        found = reranked(query, k=len(PASSAGES))
        assert [one.id for one in found] == [one.id for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-3)
    assert reranked.name == f"table reranked by colbert:{tiny_checkpoint}"
    assert RerankedRetriever.load(GivingRetriever([]), f"colbert:{tiny_checkpoint}")("water", k=3) == []


def test_a_passage_is_encoded_once_until_it_changes(tiny_checkpoint):
    table = GivingRetriever(PASSAGES)
    reranked = RerankedRetriever.load(table, f"colbert:{tiny_checkpoint}")
    encoded, passages = [], reranked._scorer._encoder.passages
    reranked._scorer._encoder.passages = lambda texts: encoded.extend(texts) or passages(texts)
    reranked("where is the island", k=3)
    assert len(encoded) == len(PASSAGES)
    table.given[4] = Passage(id="4", text="another island")  # the corpus changes
    reranked("which tree", k=3)
    assert encoded[len(PASSAGES) :] == ["another island"]
