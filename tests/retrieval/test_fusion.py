"""Reciprocal rank fusion, and retrievers by name."""

from collections.abc import Sequence

import pytest
from fakes import GivingRetriever

from questree.common.errors import IndexRefused, QuestreeError
from questree.retrieval import Passage, as_retriever, build_index
from questree.retrieval import fusion as fusion_module
from questree.retrieval.fusion import FusionRetriever
from questree.retrieval.retriever_names import named_members, open_retriever


class Listed(GivingRetriever):
    """Gives the passages of these ids."""

    def __init__(self, ids: str, *, text: str = "text of {}", name: str = "listed"):
        super().__init__(Passage(id=id, text=text.format(id), score=-rank) for rank, id in enumerate(ids))
        self.name, self.fingerprint, self.passages = name, f"{name}-{ids}", self.given


class Likening(Listed):
    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        return [[1.0] * len(others)] * len(texts)


def ids(passages: list[Passage]) -> str:
    return "".join(passage.id for passage in passages)


def test_a_passage_that_a_retriever_of_others_gives_twice_counts_once():
    given = [Passage(id=id, text=f"text of {id}") for id in "aab"]
    own = as_retriever(lambda query: given)
    assert ids(own("q", k=2)) == "ab"
    assert FusionRetriever([own, Listed("ca")])("q", k=1)[0].score == pytest.approx(1 / 61 + 1 / 62)


def test_ranks_are_fused_as_in_the_paper():
    fused = FusionRetriever([Listed("abc"), Listed("cad")])("q", k=4)
    scores = {"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61, "d": 1 / 63}
    assert {p.id: p.score for p in fused} == pytest.approx(scores)
    assert ids(fused) == "acbd"


def test_of_equal_passages_the_first_member_s_stands_first():
    assert ids(FusionRetriever([Listed("ab"), Listed("xy")])("q", k=4)) == "axby"


def test_the_same_ranks_in_another_order_are_equal():
    fillers = "abcdefghijklmnopqrstuvwAB"
    members = []
    for x, y in ((6, 24), (7, 6), (24, 7)):
        places = {x: "x", y: "y"}
        members.append(Listed("".join(places.get(n, id) for n, id in enumerate(fillers)), name=str(x)))
    fused = FusionRetriever(members)("q", k=25)
    scores = {passage.id: passage.score for passage in fused}
    assert scores["x"] == scores["y"]
    assert ids(fused).index("x") < ids(fused).index("y")


def test_members_are_searched_deeper_than_is_wanted_and_once_a_batch(monkeypatch):
    monkeypatch.setattr(fusion_module, "_DEPTH", 3)
    one, other = Listed("abcde"), Listed("edcba")
    fusion = FusionRetriever([one, other])
    assert ids(fusion("q", k=1)) == "c"  # third for both: no first place would find it
    assert len(fusion.batch(["q", "r"], k=5)[1]) == 5
    assert one.asked == [(["q"], 3), (["q", "r"], 5)]


def test_the_fingerprint_is_of_the_members():
    one, other = Listed("ab"), Listed("cd")
    made = [FusionRetriever([one, other]), FusionRetriever([other, one]), FusionRetriever([one])]
    assert len({fusion.fingerprint for fusion in made}) == len(made)
    assert FusionRetriever([one, other]).fingerprint == made[0].fingerprint


def test_one_id_for_two_passages_is_refused():
    members = [Listed("ab"), Listed("b", text="another")]
    with pytest.raises(IndexRefused, match=r"'b'.*ids that differ"):
        FusionRetriever(members)("q", k=2)


def test_texts_are_compared_by_the_member_that_can():
    assert FusionRetriever([Listed("a")]).similarity is None
    assert FusionRetriever([Listed("a"), Likening("a")]).similarity(["t"], ["u", "v"]) == [[1.0, 1.0]]


@pytest.fixture(scope="module")
def folders(passages, tmp_path_factory):
    room = tmp_path_factory.mktemp("named")
    build_index(passages, room / "whole", kind="bm25")
    build_index(passages[:60], room / "half", kind="bm25")
    build_index(passages[:60], room / "a+b", kind="bm25")
    return room


def test_a_name_is_a_folder_or_several(folders, monkeypatch):
    monkeypatch.chdir(folders)
    assert open_retriever("whole").name == "bm25"
    assert open_retriever(folders / "a+b").name == "bm25"
    fused = open_retriever("whole + half")
    assert fused.name == "fusion(bm25+bm25)"
    assert fused("amber", k=3)[0].score > 1 / 61  # found by both


def test_members_are_told_by_where_they_are(folders, monkeypatch):
    monkeypatch.chdir(folders)
    assert named_members("half+http://127.0.0.1:1/") == (str(folders / "half"), "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("whole+", "each side"),
        ("", "names no retriever"),
        ("whole+./whole", "named twice"),
        ("whole+nowhere", "no index at .*nowhere"),
        ("http://", "no address"),
        ("http://127.0.0.1:x", "no address"),
        ("http://me:secret@127.0.0.1:1", "no name or password"),
    ],
)
def test_a_name_that_cannot_be_opened_says_why(folders, monkeypatch, name, said):
    monkeypatch.chdir(folders)
    with pytest.raises(QuestreeError, match=said) as refused:
        open_retriever(name)
    assert "secret" not in str(refused.value)
