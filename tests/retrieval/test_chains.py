"""Chains of passages: a link that running text makes is followed, and one that leads back ends none."""

from random import Random

import pytest

from questree.retrieval import BM25Retriever, Passage
from questree.retrieval.linked.chains import draw_chain, told_in
from questree.retrieval.linked.links import Links

CRANE = "The crane of Port Elin lifts forty tonnes. "


def drawn(length: int, *texts: tuple[str, str], seed: int = 0, siblings: bool = False) -> list[str]:
    """Return the titles of a chain from the first passage on."""
    passages = [Passage(id=str(place), title=title, text=text) for place, (title, text) in enumerate(texts)]
    links = Links.of_passages(BM25Retriever.from_passages(passages))
    chain = draw_chain(passages, links, 0, length, Random(seed), siblings=siblings)
    return [passages[place].title for place in chain]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (CRANE, [CRANE.strip()]),
        ("Home\n\nAbout us\n\nAll cranes\n\nContact and imprint\n\n", []),
        ("- [Cranes](cranes.md)\n- [Harbours](harbours.md)\n- [Ships](ships.md)\n", []),
        ("# The cranes of the harbour\n\n" + CRANE + "Each was tested in the spring.\n", 2),
        ("クレーンは四十トンを持ち上げる。", ["クレーンは四十トンを持ち上げる。"]),
        ("It sails on Sunday, Monday and Friday from the old quay of the town.", 1),
        (CRANE * 4 + "It carries Ada Brun, Jo Ek, Marta Holm and two others.", 4),
    ],
    ids=["a sentence", "a menu", "links", "a heading", "no capitals", "two names", "a list of names"],
)
def test_running_text_is_told_from_the_rest(text: str, told: list[str] | int) -> None:
    found = told_in(Passage(id="1", title="", text=text))
    assert (len(found) if isinstance(told, int) else found) == told


@pytest.mark.parametrize(
    ("tie", "tied"),
    [
        ("It was designed by Marta Holm in her first year.", True),
        ("\n\nMarta Holm\n\n", False),
        ("It carried Ada Brun, Marta Holm, Jo Ek and Per Lund.", False),
    ],
    ids=["in a sentence", "in a line alone", "in a list of names"],
)
def test_a_sentence_has_to_make_the_link(tie: str, tied: bool) -> None:
    holm = ("Marta Holm", "She is an engineer who was born in a town by a lake.")
    assert drawn(2, ("Port Elin", CRANE * 3 + tie), holm) == ["Port Elin", "Marta Holm"][: 1 + tied]


@pytest.mark.parametrize("menu", ["first", "second"])
def test_a_menu_is_in_no_chain(menu: str) -> None:
    texts = {"first": "It was designed by Marta Holm in her first year.", "second": "She lives by a lake, in a hut."}
    texts[menu] = "Home\n\nMarta Holm\n\nAll cranes\n\n"
    assert len(drawn(2, ("Port Elin", texts["first"]), ("Marta Holm", texts["second"]))) < 2


@pytest.mark.parametrize("seed", range(4))
def test_a_passage_that_leads_back_to_the_first_ends_no_chain(seed: int) -> None:
    chain = drawn(
        2,
        ("Ada Brun", "The mother of Ada Brun is Marta Holm, as all know."),
        ("Marta Holm", "The daughter of Marta Holm is Ada Brun, and her brothers are Jo Ek and Per Lund."),
        ("Jo Ek", "The work of Jo Ek is in a mill by the water."),
        ("Per Lund", "The niece of Per Lund is Ada Brun, whom he taught to sail."),
        seed=seed,
    )
    assert chain == ["Ada Brun", "Marta Holm", "Jo Ek"]


def test_what_names_the_same_third_one_may_name_each_other() -> None:
    siblings = drawn(
        2,
        ("Ada Brun", "In the year 1958 Ada Brun left the town of Lindau."),
        ("Jo Ek", "In the year 1961 Jo Ek came with Ada Brun to the town of Lindau."),
        ("Lindau", "It is a town on an island in a lake."),
        siblings=True,
    )
    assert siblings == ["Ada Brun", "Jo Ek"]


@pytest.mark.parametrize(
    ("shared", "tied"), [("Lindau has grown and grown since.", False), ("It joined Lindau long ago.", True)]
)
def test_a_word_that_only_begins_sentences_is_no_name(shared: str, tied: bool) -> None:
    texts = (f"Cranes lift. {shared}", f"Barrels roll. {shared}")
    assert (len(drawn(2, ("Port Elin", texts[0]), ("Old Quay", texts[1]))) == 2) == tied
