import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from manifests import rewrite_manifest

from questree.common.errors import CorpusError, QueryError
from questree.retrieval import (
    BM25Retriever,
    BM25Settings,
    BuildProgress,
    LinkedRetriever,
    Passage,
    add_to_index,
    build_index,
    load_index,
    open_retriever,
    read_manifest,
)
from questree.retrieval.base import best
from questree.retrieval.fusion import FusionRetriever
from questree.retrieval.late_interaction import exact
from questree.retrieval.late_interaction.exact import Block
from questree.retrieval.qdrant.layout import QdrantSettings
from questree.retrieval.qdrant.upload import upload

BY_WORDS = ("bm25", "rerank", "qdrant", "linked bm25")
"""Find only passages that hold a word of the query."""


@pytest.fixture(
    scope="module", params=["bm25", "exact", "colbert", "rerank", "dense", "qdrant", "linked", "linked exact", "fusion"]
)
def retriever(request, passages, index_of, tiny_checkpoint, tmp_path_factory):
    if request.param == "bm25":
        return BM25Retriever.from_passages(passages)
    if request.param == "fusion":
        return open_retriever(f"{index_of('bm25')}+{index_of('exact')}")
    if request.param == "linked exact":
        return load_index(index_of("linked")).over(load_index(index_of("exact")))
    if request.param != "qdrant":
        return load_index(index_of(request.param))
    pytest.importorskip("qdrant_client", reason="needs questree[qdrant]")

    at = f"qdrant:{tmp_path_factory.mktemp('qdrant')}/c"
    upload(passages, at, checkpoint=tiny_checkpoint, settings=QdrantSettings(candidates=10_000))
    return open_retriever(at)


def test_a_passage_finds_itself(retriever, passages):
    if isinstance(retriever, LinkedRetriever):
        pytest.skip("it puts the passages of a chain first, whatever words they have")
    for passage in passages[:10]:
        assert retriever(passage.shown(), k=3)[0].id == passage.id


def test_best_first_and_no_more_than_there_are(retriever, passages):
    found = retriever("amber lagoon", k=10_000)
    by_words, words = retriever.name in BY_WORDS, {"amber", "lagoon"}
    held = [p for p in passages if not by_words or words & set(re.findall(r"\w+", p.shown()))]
    if retriever.name == "linked bm25":  # and what these lead to
        held += [p for p in found if p.id not in {one.id for one in held}]
        assert len(held) < len(passages)
    assert sorted(p.id for p in found) == sorted(p.id for p in held)
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)


def test_a_batch_is_its_single_calls(retriever, passages):
    queries = [passage.text for passage in passages[:12]]
    singly = [[p.id for p in retriever(query, k=4)] for query in queries]
    assert [[p.id for p in found] for found in retriever.batch(queries, k=4)] == singly
    assert retriever.batch([], k=4) == []


def test_a_query_is_searched_once(retriever, monkeypatch):
    if not hasattr(retriever, "_search"):
        pytest.skip("its members remember")
    first = retriever("harbor pebble once", k=3)
    monkeypatch.setattr(retriever, "_search", lambda queries, k: pytest.fail(f"searched again: {queries}"))
    expected = list(first)
    first.clear()  # a caller's list is its own
    assert retriever("harbor pebble once", k=3) == expected


@pytest.mark.parametrize("kind", ["bm25", "exact", "rerank", "linked"])
def test_copies_do_not_fill_the_first_places(tmp_path, passages, kind, tiny_checkpoint):
    copies = [Passage(id=f"copy{n}", title="T", text="amber harbor") for n in range(30)]
    other = [Passage(id=f"other{n}", title=f"T{n}", text=f"amber harbor {n} lies there") for n in range(9)]
    how = {} if kind in ("bm25", "linked") else {"checkpoint": tiny_checkpoint}
    index = load_index(build_index([*copies, *other, *passages], tmp_path / "index", kind=kind, **how))
    for k in (1, 2, 5, 9):
        found = index("amber harbor", k=k)
        assert len(found) == len({(one.title, one.text) for one in found}) == k
    queries = ["amber harbor", "amber harbor 3"]
    assert index.batch(queries, k=5) == [index(query, k=5) for query in queries]
    fused = FusionRetriever([index, BM25Retriever.from_passages(copies[::-1])])
    assert [one.text for one in fused("amber harbor", k=4)].count("amber harbor") == 1


def test_threads_get_what_one_thread_gets(retriever, passages):
    queries = [passage.text for passage in passages[:8]] * 2
    expected = [retriever(query, k=2) for query in queries[:8]] * 2
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: retriever(query, k=2), queries))
    assert [[p.id for p in f] for f in found] == [[p.id for p in e] for e in expected]


@pytest.mark.parametrize("query", ["", "  \n", None])
def test_an_empty_query_is_refused(retriever, query):
    with pytest.raises(QueryError):
        retriever(query)
    with pytest.raises(QueryError):
        retriever.batch(["fine", query])


def test_no_passages_asked_for_is_refused(retriever):
    with pytest.raises(QueryError, match="ask for one"):
        retriever("amber", k=0)


WITHOUT_WORDS = ["?!", "the of and", "日本語", "\x00"]  # that stand in a passage


@pytest.mark.parametrize("query", [*WITHOUT_WORDS, "amber \ud800", "fjord " * 5_000])
def test_odd_queries_are_answered(retriever, query):
    found = retriever(query, k=3)
    assert len(found) == (0 if retriever.name in BY_WORDS and query in WITHOUT_WORDS else 3)
    assert retriever.batch([query, "amber"], k=3) == [found, retriever("amber", k=3)]


def test_passages_without_words_do_no_harm():
    texts = ["?!", "amber", "the"]
    retriever = BM25Retriever.from_passages(Passage(id=text, text=text) for text in texts)
    assert [p.id for p in retriever("amber", k=3)] == ["amber"]
    with pytest.raises(CorpusError, match="holds a word"):
        BM25Retriever.from_passages([Passage(id="a", text="?!")])


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (unicodedata.normalize("NFD", "Das Café in Zürich"), "café"),  # accents as characters of their own
        ("Das Café in Zürich", unicodedata.normalize("NFD", "ZÜRICH")),
        ("Das Café in Zürich", "cafe zurich"),
        ("A cafe", "café"),
        ("Søren Łukasz", "soren"),
        ("Ἀθῆναι", "αθηναι"),
        ("the o\ufb03ce", "office"),  # a ligature, as in texts from PDF files
        ("राजधानी दिल्ली है", "राजधानी"),
        ("Die Straße", "STRASSE"),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "เมืองหลวงของประเทศไทย"),  # a part that signs bound
    ],
)
def test_a_word_is_found_however_it_is_written(text, query):
    assert BM25Retriever.from_passages([Passage(id="1", text=text)])(query)


def test_a_mark_that_makes_another_letter_stays():
    retriever = BM25Retriever.from_passages([Passage(id="1", text="かた"), Passage(id="2", text="край")])
    assert [retriever(query) for query in ("がた", "краи")] == [[], []]


@pytest.mark.parametrize("kind", ["bm25", "linked"])
def test_an_index_of_before_is_searched_as_it_was_made(tmp_path, kind):
    made = [Passage(id="1", title="Café", text="In Zürich."), Passage(id="2", title="Cafe", text="In Bern.")]
    settings = BM25Settings(without_accents=False)
    index = build_index(made, tmp_path / "index", kind=kind, settings=settings)
    rewrite_manifest(index, lambda content: content["settings"].pop("without_accents"))
    for more in ([], [Passage(id="3", text="Genève.")]):
        if more:
            add_to_index(more, index)
        found = load_index(index).batch(["café", "zurich", "geneve"], k=1)
        assert [[one.id for one in some] for some in found] == [["1"], [], []]


@pytest.mark.parametrize(
    ("texts", "queries"),
    [
        (["東京は日本の首都である。", "京都は古い都である。"], ["日本の首都はどこですか？", "古い都市"]),
        (["北京是中国的首都。", "上海是最大的城市。"], ["中国首都在哪里", "最大城市"]),
        (["กรุงเทพเป็นเมืองหลวงของประเทศไทย", "เชียงใหม่อยู่ทางเหนือ"], ["เมืองหลวงของไทย", "เมืองทางเหนือ"]),
        (["서울은 대한민국의 수도이다.", "부산은 항구 도시이다."], ["대한민국 수도", "항구는 부산"]),
        (["東京タワーは333メートルである。", "ｶﾞｰﾃﾞﾝは庭である。"], ["タワーの333", "ガーデン"]),
    ],
)
def test_words_are_found_where_no_spaces_part_them(texts, queries):
    retriever = BM25Retriever.from_passages(Passage(id=str(n), text=text) for n, text in enumerate(texts))
    assert [retriever(query)[0].id for query in queries] == ["0", "1"]


def test_vowel_signs_tell_words_apart():
    retriever = BM25Retriever.from_passages([Passage(id="1", text="दीन"), Passage(id="2", text="दिन")])
    assert [passage.id for passage in retriever("दिन", k=2)] == ["2"]


def test_equal_scores_keep_the_corpus_order():
    retriever = BM25Retriever.from_passages(Passage(id=str(n), text="alike words" + "." * n) for n in range(20))
    assert [p.id for p in retriever("alike", k=5)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("count", [1, 50, 1024, 5000])
@pytest.mark.parametrize("k", [1, 3, 200])
@pytest.mark.parametrize("values", [3, 1000])
def test_the_best_are_those_of_a_whole_order(count, k, values):
    scores = np.random.default_rng(count + k).integers(-values, values, count).astype(np.float32)
    whole = sorted(((n, float(score)) for n, score in enumerate(scores)), key=lambda hit: (-hit[1], hit[0]))
    assert best(scores, k) == whole[:k]
    assert best(scores, k, above=0) == [hit for hit in whole if hit[1] > 0][:k]


def test_exact_scores_are_maxsim(exact_folder, passages):
    retriever = load_index(exact_folder)
    encoder = retriever.encoder
    (query,) = encoder.queries(["harbor pebble"])
    embedded = encoder.passages([p.shown() for p in passages])
    by_hand = {p.id: float((query @ m.float().T).amax(1).sum()) for p, m in zip(passages, embedded, strict=True)}
    found = {p.id: p.score for p in retriever("harbor pebble", k=len(passages))}
    assert torch.allclose(torch.tensor([found[i] for i in by_hand]), torch.tensor(list(by_hand.values())), atol=1e-4)


@pytest.mark.parametrize(("rows", "held"), [(16, 2 << 30), (1 << 15, 0)], ids=["small blocks", "from disk"])
def test_exact_scores_do_not_depend_on_memory(exact_folder, monkeypatch, rows, held):
    expected = load_index(exact_folder)("harbor pebble", k=20)
    monkeypatch.setattr(exact, "_ROWS_TOGETHER", rows)
    monkeypatch.setattr(exact, "_HELD_BYTES", held)
    assert [p.id for p in load_index(exact_folder)("harbor pebble", k=20)] == [p.id for p in expected]


@pytest.mark.parametrize("tokens", [5, 40])
def test_best_matches_are_those_of_each_passage(tokens):
    draw = np.random.default_rng(3)
    lengths, query = draw.integers(1, 9, 60), torch.from_numpy(draw.standard_normal((tokens, 8), dtype=np.float32))
    rows = draw.standard_normal((int(lengths.sum()), 8)).astype(np.float16)
    cut = int(lengths[:40].sum())
    block = Block.of([(100, lengths[:40], rows[:cut]), (140, lengths[40:], rows[cut:])])
    of_passage = np.split(rows.astype(np.float32), np.cumsum(lengths)[:-1])
    expected = torch.stack([(query @ torch.from_numpy(of_passage[p - 100]).T).amax(1) for p in block.passages], dim=1)
    assert sorted(block.passages) == list(range(100, 160))
    for found in (block.by_runs(query), block.by_segments(query)):
        assert torch.allclose(found, expected, atol=1e-5)


def test_texts_are_most_like_themselves(exact_folder, passages):
    retriever = load_index(exact_folder)
    texts = [passage.shown() for passage in passages[:3]]
    rows = retriever.similarity(texts[:1], texts)
    assert len(rows) == 1
    assert rows[0][0] == pytest.approx(1, abs=1e-3)
    assert max(rows[0][1:]) < rows[0][0]
    assert retriever.similarity(texts[:1], texts) == rows  # also when they are known


def test_encoding_tells_progress_and_what_was_cut(tiny_checkpoint, tmp_path, caplog):
    long = [Passage(id=str(n), text="amber " * (5 if n else 200)) for n in range(30)]
    told: list[BuildProgress] = []
    folder = build_index(long, tmp_path / "index", checkpoint=tiny_checkpoint, progress=told.append)
    assert (told[-1].stage, told[-1].done, told[-1].total) == ("encoding", 30, 30)
    assert read_manifest(folder).corpus.filled == 1
    assert "1 passages fill the window of 40 tokens" in caplog.text
