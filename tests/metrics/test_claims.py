"""What a text claims, and whether another one holds it."""

import pytest

from questree.metrics import (
    agree,
    all_stand_in,
    claim_terms,
    items,
    stands_in,
    supports_fragment,
    telling_sentence,
    tells,
)
from questree.metrics.claims import supporting_sentences


@pytest.mark.parametrize(
    ("fragment", "passage", "question", "supported"),
    [
        ("She was born in Warsaw", "Marie Curie was born in Warsaw.", "", True),
        ("She was born in Warsaw", "Warsawa is Polish for it.", "", False),
        ("Marie Curie was born in Warsaw", "Marie Curie taught in Paris.", "Where was Marie Curie born?", False),
        ("Marie Curie was there", "Marie Curie taught in Paris.", "Where was Marie Curie born?", True),
        ("Warsaw with Bronia", "Warsaw, the capital.", "", True),  # half of the terms
        ("Warsaw with Bronia and with Zofia", "Warsaw, the capital.", "", False),
        ("Warsaw in 1867", "Warsaw, the capital.", "", False),  # each number
        ("Warsaw in 1867", "Warsaw, the capital.", "What happened in 1867?", True),
        ("and so it was", "Anything.", "", True),  # nothing to judge by
        ("She was the 45th of them", "Ann was the 45th of them.", "", True),
        ("It was loved in the 1990s", "It was loved in the 1990s.", "", True),
        ("It lasted 1939–1945", "It lasted 1939–1945.", "", True),
        ("It lasted from 1939 to 1945", "It lasted 1939-1945.", "", True),
        ("It lasted 1939–1945", "It lasted 1914–1918.", "", False),
        ("The doors open at 12:30", "The doors open at 12:30.", "", True),
        ("It weighs 10 kg", "It weighs 10kg.", "", True),
        ("It costs €240 million", "It costs €240 million.", "", True),
        ("Kubrick's wife acted", "Stanley Kubrick married her.", "", True),
        ("Kubrick's wife was Ruth", "Stanley Kubrick married Toba.", "Who was Kubrick married to?", False),
        ('It is "Heroes"', "It is “Heroes”.", "", True),
        ("O'Brien wrote it", "It is by O’Brien.", "", True),
        ("It hangs in the Musée d'Orsay", "It hangs in the Musée d'Orsay.", "", True),
        ("They met in a café", "They met.", "", True),  # é begins no name
        ("Он родился в Москве", "Она пела.", "", False),
        ("Он родился в Москве в 1900 году", "В Москве он родился в 1900.", "", True),
        ("它是首都", "北京。", "", True),  # a script without capitals tells no names
        ("它建于 1900 年", "它建于 1800 年。", "", False),
    ],
)
def test_a_passage_supports_a_fragment_by_its_new_names_and_numbers(fragment, passage, question, supported) -> None:
    assert supports_fragment(fragment, passage, question) is supported


@pytest.mark.parametrize(
    ("fragment", "terms"),
    [
        ("It's the 21st of May", ["21st of May"]),
        ("He left Canada and the U.S. in 1,234 days", ["Canada and the U.S.", "1,234"]),
        ("the iPhone and 3D films", ["iPhone", "3D"]),
        ("naïve Élodie and Ödön von Horváth", ["Élodie and Ödön von Horváth"]),
        ('"A. wegeneri" is small', []),
        ("born on 0974-09-11, at -12 and 3.5% in C++", ["0974-09-11", "-12", "3.5%", "C++"]),
        ("March 4, 1998 or 04.03.1999 or 1.2 million", ["March 4, 1998", "04.03.1999", "1.2 million"]),
        ("The daughters are Bea Angell and Kyra Haun", ["Bea Angell and Kyra Haun"]),
    ],
)
def test_the_terms_of_a_fragment_are_whole_words(fragment, terms) -> None:
    assert claim_terms(fragment) == terms


FAMILY = "The daughters of Lia Holm are Georgine Angell, Kyra Haun, Mo Ek. She was born on 0974-09-11."


@pytest.mark.parametrize(
    ("fragment", "supported"),
    [
        ("The daughters of Lia Holm are Georgine Angell and Kyra Haun", True),
        ("Her daughters are Georgine Angell, Kyra Haun, and Mo Ek", True),
        ("Kyra Haun as well as Mo Ek", True),
        ("both Kyra Haun and Mo Ek", True),
        ("Kyra Haun & Georgine Angell", True),
        ("Kyra Haun/Mo Ek", True),
        ("Kyra Haun or Georgine Angell", True),
        ("Kyra Haun and Bo Ek", False),  # a list of two is one term
        ("She has 3 daughters", True),  # counted
        ("She has 2 daughters", False),
        ("She was born on September 11, 974", True),
        ("She was born on 0974-11-09", False),
        ("Mo Ek and Kyra Haun were born on 11 September 0974", True),
    ],
)
def test_a_list_is_looked_for_item_by_item(fragment, supported):
    assert supports_fragment(fragment, FAMILY) is supported


@pytest.mark.parametrize(
    ("phrase", "parts"),
    [
        ("Ann Lee, Bo Ek, and Cy Orr", ("Ann Lee", "Bo Ek", "Cy Orr")),
        ("solicitor and printmaker", ("solicitor", "printmaker")),
        ("either Ann or Bo", ("Ann", "Bo")),
        ("0974-09-11 and March 4, 1998", ("0974-09-11", "March 4, 1998")),
        ("1982, 1,200 and 3.5", ("1982", "1,200", "3.5")),
        ("Rolls-Royce", ("Rolls-Royce",)),
        ("May, 1883", ("May, 1883",)),
        ("Anderson", ("Anderson",)),
        ("actuary (Tanya Lee), clerk (Bo Ek)", ("actuary", "Tanya Lee", "clerk", "Bo Ek")),
        ("甲、乙", ("甲", "乙")),
        ("", ("",)),
    ],
)
def test_the_items_of_a_list(phrase, parts):
    assert items(phrase) == parts


@pytest.mark.parametrize(
    ("text", "phrase", "stands"),
    [
        ("It weighs 3.5 tonnes.", "3.5 tonnes", True),
        ("It weighs 3.5 tonnes.", "3,5 tonnes", True),
        ("It weighs 3.5 tonnes.", "3.50", True),
        ("It weighs 3.5 tonnes.", "35 tonnes", False),
        ("It weighs 3.5 tonnes.", "5.3", False),
        ("It weighs 3.5 tonnes.", "5 tonnes", False),
        ("It was -12 degrees.", "-12", True),
        ("It was −12 degrees.", "-12", True),
        ("It was -12 degrees.", "12", False),
        ("It lasted 1939-1945.", "1945", True),
        ("It rose by 5%.", "5 percent", True),
        ("It rose by 5%.", "5", False),
        ("They won 3:2.", "2:3", False),
        ("They won 3:2.", "32", False),
        ("1/2 of it", "12", False),
        ("1,200,000 people", "1.2 million", True),
        ("1.2 billion people", "1.2 million", False),
        ("born on 04.03.1998", "4 March 1998", True),
        ("born on 04.03.1998", "03.04.1998", False),
        ("born on 4/3/1998", "04/03/1998", True),
        ("born on 4/3/1998", "3/4/1998", False),
        ("born on 18/10/1998", "October 18th, 1998", True),
        ("born on 1998-10-18", "18 Oct. 1998", True),
        ("In 1998, on 4 March, she left.", "4 March 1998", True),
        ("In 1998 she left on 4 March 1999.", "4 March 1998", False),
        ("from 4 to 6 May 1998", "4 May 1998", True),
        ("13–15 May", "15 May", True),
        ("the 1982–83 season", "1982-83", True),
        ("Scarlett O’Hara", "O'Hara", True),
        ("It is in C++.", "C", False),
        ("It is in C++.", "C++", True),
        ("It is in C/C++.", "C", True),
        ("Rolls-Royce made it.", "Rolls Royce", True),
        ("in the U.S. alone", "US", True),
        ("Ann García", "Ann Garcia", True),
        ("its third wife", "3rd wife", True),
        ("seven people", "7", True),
        ("the 45th", "45", True),
        ("北京是首都。", "首都", True),
        ("anything", "", False),
    ],
)
def test_numbers_dates_and_names_are_compared_as_values(text, phrase, stands):
    assert stands_in(text, phrase) is stands


def test_a_name_with_and_in_it_stays_whole_where_the_text_has_it_whole():
    assert all_stand_in("Born in Trinidad and Tobago.", "Trinidad and Tobago")
    assert all_stand_in("Tobago lies near Trinidad.", "Trinidad and Tobago")
    assert not all_stand_in("Born in Trinidad.", "Trinidad and Tobago")


def test_answers_agree_in_any_order_and_not_without_their_signs():
    assert agree("Venice", "Venice, Italy")
    assert agree("Bo Ek and Ann Lee", "Ann Lee, Bo Ek")
    assert not agree("35 tonnes", "3.5 tonnes")
    assert not agree("4 March 1998", "3 April 1998")


@pytest.mark.parametrize(
    ("answer", "told"),
    [("36 tonnes", False), ("3.5 tonnes", True), ("3.50 tons", True), ("Heron", True), ("Old Heron Bridge", True)],
)
def test_a_fragment_tells_an_answer_by_half_of_its_words_and_all_of_its_numbers(answer, told):
    assert tells("Heron Bridge weighs 3.5 tonnes", answer) is told


SIBLINGS = (
    "The mother of Laverne Tyner is Hilde Byers. The brothers of Laverne Tyner are Barney Byers, Emmett Byers. "
    "The hobby of Laverne Tyner is chess. Barney Byers paints."
)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("Barney Byers", "The brothers of Laverne Tyner are Barney Byers, Emmett Byers."),
        ("Emmett Byers and Barney Byers", "The brothers of Laverne Tyner are Barney Byers, Emmett Byers."),
        ("Hilde Byers and Emmett Byers", SIBLINGS.partition(" The hobby")[0]),
        ("Ann Byers", None),
        ("Barney Byers and Ann Lee", None),
    ],
)
def test_the_sentence_that_tells_an_answer_holds_all_of_it(answer, sentence):
    assert telling_sentence("Who is a sibling of Laverne Tyner?", answer, "Laverne Tyner", SIBLINGS) == sentence


def test_a_sentence_tells_what_the_title_names():
    text = "Barney Byers was born in Orvane. He is a brother of Laverne Tyner."
    told = telling_sentence("Who is a brother of Laverne Tyner?", "Barney Byers", "Barney Byers", text)
    assert told == "He is a brother of Laverne Tyner."


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("Joyce was born in Dublin", "He was born in Dublin in 1882."),
        ("He wrote Ulysses", "Joyce wrote Ulysses."),
        ("it is about a day", "It tells of one day."),
        ("nothing whatever", None),
    ],
)
def test_the_sentence_behind_a_fragment_holds_most_of_it(fragment, sentence) -> None:
    passage = "Joyce wrote Ulysses. He was born in Dublin in 1882. It tells of one day."
    assert supporting_sentences(fragment, passage, "James Joyce") == ([sentence] if sentence else [])


def test_what_two_sentences_hold_is_supported_by_both():
    parents = ["The mother of Galen Vargas is Ada Vargas.", "The father of Galen Vargas is Michael Vargas."]
    text = f"{parents[0]} His hobby is chess. {parents[1]} Michael Vargas paints."
    assert supporting_sentences("The parents of Galen Vargas are Ada Vargas and Michael Vargas", text) == parents
    assert supporting_sentences("Galen Vargas has the mother Ada Vargas", text, "Galen Vargas") == parents[:1]
    about = "He was born in 1950. Ada Vargas is his mother. Galen Vargas paints."
    assert supporting_sentences("Galen Vargas was born in 1950", about, "Galen Vargas") == ["He was born in 1950."]
