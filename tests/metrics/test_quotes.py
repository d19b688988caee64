"""Quotes: where they stand in a passage, and what they prove."""

import pytest

from questree.metrics.quotes import proving_sentences, quoted_sentences

TITLE = "Brenka Ostal"
FIRST = "Brenka Ostal (3 May 1911 – 1987) was a Velian painter."
SECOND = "In 1934 she moved to Orvane, where she taught 1,200 pupils."
TEXT = f"{FIRST} {SECOND} She never left the town."
QUESTION = "Where did the painter of The Red Barge move to?"


@pytest.mark.parametrize(
    ("quote", "sentences"),
    [
        ("moved to Orvane", SECOND),
        ("MOVED TO ÓRVANE", SECOND),
        ("“she moved to Orvane, where she taught 1200 pupils”", SECOND),
        ("(3 May 1911 - 1987)", FIRST),
        ("‘where she taught 1\u202f200 pupils’", SECOND),
        ("«Brenka Ostal» (3. May 1911", FIRST),
        ("was a Velian painter. In 1934 she moved", f"{FIRST} {SECOND}"),
        ("Ostal … was a Velian painter", FIRST),
        ("...moved to Orvane...", SECOND),
        ("was a Velian painter … Ostal", None),  # in another order
        ("she moved to Orvane in 1934", None),
        ("moved to Orvan", None),
        ("", None),
        ("…", None),
    ],
)
def test_where_a_quote_stands(quote: str, sentences: str | None):
    assert quoted_sentences(quote, TEXT) == sentences


@pytest.mark.parametrize(
    ("fact", "quote", "proven"),
    [
        ("Brenka Ostal moved to Orvane in 1934.", "In 1934 she moved to Orvane", True),  # the title names the subject
        ("Ostal moved to Orvane.", "she moved to Orvane", True),
        ("The painter of The Red Barge moved to Orvane.", "she moved to Orvane", True),  # the question tells the rest
        ("Brenka Ostal moved to Tarn.", "In 1934 she moved to Orvane", False),
        ("Brenka Ostal moved to Orvane in 1935.", "In 1934 she moved to Orvane", False),
        ("Ilse Ostal moved to Orvane.", "she moved to Orvane", False),  # another person
        ("Brenka Ostal was a painter.", "Brenka Ostal", False),  # nothing but the title
        ("Brenka Ostal was born in 1911.", "1911", False),  # too short to say anything
        ("The Red Barge was painted by a woman.", "She never left the town", False),  # names neither side
        ("she never left the town.", "She never left the town", True),
        ("Brenka Ostal was born on May 3, 1911.", "Brenka Ostal (3 May 1911 – 1987)", True),
        ("Brenka Ostal was born on 5 March 1911.", "Brenka Ostal (3 May 1911 – 1987)", False),
        ("Ostal and Orvane", "In 1934 she moved to Orvane", True),  # two names, each by itself
        ("Tarn and Orvane", "In 1934 she moved to Orvane", False),
    ],
)
def test_what_a_quote_proves(fact: str, quote: str, proven: bool):
    assert (proving_sentences(fact, quote, TITLE, TEXT, QUESTION) is not None) is proven


@pytest.mark.parametrize(
    ("value", "proven"), [("3.5", True), ("5.3", False), ("35", False), ("-12", True), ("12", False), ("7%", True)]
)
def test_a_quote_proves_numbers_by_their_value(value: str, proven: bool):
    text = "The deck of Heron Bridge weighs 3.5 tonnes at -12 degrees, and 7% of it is steel."
    fact = f"The deck of Heron Bridge has {value}."
    assert (proving_sentences(fact, text, "Heron Bridge", text, "What is it?") is not None) is proven


def test_a_quotation_mark_before_a_word_is_no_genitive():
    text = "``Turn Me On ''Single by Ada Hale’s band from Orvane"
    assert quoted_sentences("Single by Ada Hale's band", text) == text


def test_a_passage_of_a_hundred_thousand_words_is_looked_through_at_once():
    quote = " ".join(["she moved to"] * 50)
    assert quoted_sentences(quote + " Orvane", "she moved to " * 33_000) is None
