"""Where a passage stands travels with it, and is told to people, never to an LM."""

import pytest
from hostile_text import HOSTILE

from questree.retrieval import Passage, as_retriever, build_index, load_index
from questree.retrieval.qdrant.layout import passage_from_point, point_of

STANDS = {"source": "a b/leave.pdf#page=4", "start": 7, "end": 19}


@pytest.mark.parametrize("kind", ["bm25", "exact", "colbert", "rerank", "dense", "linked"])
def test_every_kind_of_index_gives_it(kind, passages, tmp_path, tiny_checkpoint, sentence_folder):
    checkpoint = {"bm25": None, "linked": None, "dense": sentence_folder}.get(kind, tiny_checkpoint)
    stands = [one.model_copy(update=STANDS | {"start": place}) for place, one in enumerate(passages)]
    index = build_index(stands, tmp_path / "index", kind=kind, checkpoint=checkpoint)
    found = load_index(index)(passages[3].text, k=5)
    assert found
    by_id = {one.id: one for one in stands}
    for one in found:
        assert one.model_dump(include={*STANDS}) == by_id[one.id].model_dump(include={*STANDS})


def test_qdrant_keeps_it():
    pytest.importorskip("qdrant_client", reason="needs questree[qdrant]")
    passage = Passage(id="1", text="amber", **STANDS)
    import numpy as np

    point = point_of(0, passage, ([1], [1.0]), np.zeros((1, 2)))
    assert passage_from_point(point) == passage
    assert "source" not in point_of(0, Passage(id="1", text="amber"), ([1], [1.0]), np.zeros((1, 2))).payload


@pytest.mark.parametrize("name", ["url", "source"])
def test_a_retriever_of_one_s_own_may_give_it(name):
    [found] = as_retriever(lambda query: [{"text": "amber", name: "https://a.example/x#y"}])("amber", k=1)
    assert found.url == found.place == "https://a.example/x#y"


@pytest.mark.parametrize(
    ("title", "source", "place"),
    [
        ("leave › page 4", "a/leave.pdf#page=4", "a/leave.pdf, page 4"),
        ("Teams › Heads of department", "teams.md#heads-of-department", "teams.md › Heads of department"),
        ("notes", "100%25%23.txt", "100%#.txt"),
        ("Prague", "", "p"),
        ("page", "a.md#page=x", "a.md › page"),
    ],
)
def test_a_place_is_told_in_words(title, source, place):
    passage = Passage(id="p", title=title, text="It says so.", source=source)
    assert passage.place == place
    assert passage.cited() == (f"{place}: It says so." if source else "Prague (p): It says so.")
    assert passage.shown() == Passage(id="p", title=title, text="It says so.").shown()


@pytest.mark.parametrize(
    "source", ["javascript:alert(1)", "data:text/html,x", "https:x", "http://a b/", "http://[", "//a/b", "http://a/\n"]
)
def test_only_an_address_of_the_web_is_one(source):
    assert not Passage(id="p", text="x", source=source).url


def test_hostile_names_stay_on_their_line():
    passage = Passage(id="p", title=HOSTILE, text="x", source=f"a%0A[2] b\n{HOSTILE}.md")
    assert "\n" not in passage.cited()
