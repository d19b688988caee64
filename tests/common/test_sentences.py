"""Where a sentence ends, and where it does not."""

import pytest

from questree.common.sentences import sentences, without_item_mark


@pytest.mark.parametrize(
    "whole",
    [
        "J. R. R. Tolkien met Dr. Smith.",
        "His record label is Warner Bros. Records.",
        "Prof. J.P. Hayes of Acme Inc. taught in Washington, D.C. for years.",
        "The Dinosaurs! aired on ABC.",
        'The song "Where Are You?" was sung in 1978.',
        "She has a B.A. and a Ph.D. from Yale.",
        "It is 3.5 km long, No. 5 of all",
        "She was the chief queen of King Dikkha (r. 1554–1556) and of others.",
        "Cesare Negri (c. 1535 – ca. 1605), also known as il Trombone (a.k.a. Negri), danced.",
        "It came out in Dec. 1976, before Brown v. Board of Education.",
    ],
)
def test_what_ends_no_sentence(whole):
    assert sentences(f" {whole}\n") == [whole]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("He left!", "Why?"),
        ("It came out on Warner Bros.", "In 2008 it was sold."),
        ("She said: “No.”", "He left."),
        ("It is the code DEU.", "So the answer is DEU."),
        ("He was crowned in 800 A.D.", "Thus he was an emperor."),
        ("It was Pope John XXIII.", "Rome was his city."),
        ("No.", "The river is another one."),
        ("She was born in Прага.", "Она жила там."),
        ("It flows there [2].", "[3] It is long."),
        ("The fact is Joni's.", "Warner had another."),
        ("He cleared 4.48 m.", "At the next height he failed."),
        ("It lies in Prague.[1]", "He was born there.[2]"),
        ("**Step 1:** He was born in Prague.", "**Step 2:** It lies on the Vltava."),
        ("He wrote **Ulysses.**", "It is long."),
        ("他出生于布拉格。", "布拉格位于伏尔塔瓦河畔！"),
    ],
)
def test_where_a_sentence_ends(first, second):
    assert sentences(f"{first}  {second}") == [first, second]


@pytest.mark.parametrize("mark", ["1.", "1)", "-", "*", "•", "**1.**", "Step 1."])
@pytest.mark.parametrize("stop", [".", ""])
def test_each_item_of_a_list_is_a_sentence_and_its_number_is_none(mark, stop):
    told = [f"{mark} Kafka was born in Prague{stop}", f"{mark.replace('1', '2')} Prague lies on the Vltava{stop}"]
    assert sentences("\n".join(told)) == told
    assert list(map(without_item_mark, told)) == [f"Kafka was born in Prague{stop}", f"Prague lies on the Vltava{stop}"]


@pytest.mark.parametrize(
    "lines",
    [
        ["# Friends", "The friends of Ann Lee are Bo Ek and Cy Orr", "## Attributes", "Her hobby is chess."],
        ["The heads are", "| Team | Head |", "|---|---|", "| Ferry | Ann Lee |", "They meet weekly."],
        ["- Ann Lee", "- Bo Ek", "", "Both are heads."],
        ["A caption without a stop", "", "It rained."],
        ["A caption", " \t", "It rained."],
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_headings_items_rows_and_empty_lines_end_a_sentence(lines, line_break):
    assert sentences(line_break.join(lines)) == [line for line in lines if line.strip()]


def test_a_text_without_words_has_no_sentences():
    assert sentences(" ") == sentences("") == []


def test_long_runs_of_stops_and_spaces_take_no_longer_than_others():
    assert len(sentences("." * 200_000 + " " * 200_000 + "a")) == 1
