"""Texts that say nothing, and those that only begin like one."""

import pytest

from questree.common.text import queries_in, query_or_none, text_or_none, unquoted

LONG = "The question is how the wall came to fall: in the summer of 1989 Hungary opened its border, and thousands left."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The question cannot be answered from the passages.", None),
        ("This question is not answerable", None),
        ("null", None),
        ("None needed.", None),
        ("No follow-up question is needed.", None),
        ("No further facts are missing", None),
        ("Nothing is missing.", None),
        ("N/A", None),
        ("n.a.", None),
        ("NA", None),
        ("Na", "Na"),  # what is the symbol of sodium?
        ("Na+", "Na+"),
        ("Unable to determine the answer from the passages.", None),
        ("Cannot determine", None),
        ("Unanswerable", None),
        ("The answer is not in the passages.", None),
        ("No answer available", None),
        ("Answer not found", None),
        ("Cannot Buy My Soul", "Cannot Buy My Soul"),
        ("Not in the mood", "Not in the mood"),
        ("No visa is needed", "No visa is needed"),
        ("Nothing", "Nothing"),
        (LONG, LONG),
        ("  The Unknown ", "The Unknown"),
        ("Unknown. The article does not mention who opened the school", None),  # as a recorded LM said it 50 times
        ("Unknown (the passages do not say)", None),
        ("None, the answers are enough.", None),
        ("The producer is not named, so the answer is: Unknown", None),
        ("The passages do not mention her birthplace.", None),
        ("No passage tells when he died.", None),
        ("Not mentioned in the passages", None),
        ("This question is too vague. Please provide more information about the president that you refer to", None),
        ("I don’t know.", None),
        ("I'm sorry, but I can't help with that.", None),
        ("Unknown, but probably Paris", "Unknown, but probably Paris"),
        ("Unknown. Perhaps it was Paris.", "Unknown. Perhaps it was Paris."),
        ("Unknown (2011 film)", "Unknown (2011 film)"),
        ("The passages say that he died in 1999.", "The passages say that he died in 1999."),
        ("None but the Brave", "None but the Brave"),
        ("It is not known by name, but as 221B Baker Street", "It is not known by name, but as 221B Baker Street"),
    ],
)
def test_what_says_nothing_is_none(text, said):
    assert text_or_none(text) == said


def test_a_long_run_of_signs_takes_no_longer_than_others():
    assert text_or_none("\n" * 200_000 + "a") == "a"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ('"Who wrote Ulysses?"', "Who wrote Ulysses?"),
        (" “Who wrote Ulysses?” ", "Who wrote Ulysses?"),
        ("`Ulysses author`", "Ulysses author"),
        ("```Ulysses author```", "Ulysses author"),
        ("**Ulysses author**", "Ulysses author"),
        ("'Who is Molly Bloom's husband?'", "Who is Molly Bloom's husband?"),
        ("「東京はどこ」", "東京はどこ"),
        ('Who wrote "Ulysses"?', 'Who wrote "Ulysses"?'),
        ('"Heroes" or "Low"', '"Heroes" or "Low"'),
        ("'Heroes' or 'Low'", "'Heroes' or 'Low'"),
        ('"Weird Al" Yankovic', '"Weird Al" Yankovic'),
        ("the Beatles'", "the Beatles'"),
        ('""', '""'),
        ('" "', '" "'),
        (" ", " "),
        ('"', '"'),
    ],
)
def test_quotation_marks_around_the_whole_of_a_text_are_taken_off(text, bare):
    assert unquoted(text) == bare


def test_what_says_nothing_is_no_query_in_quotation_marks_either():
    assert query_or_none('"none"') is query_or_none(None) is None
    assert queries_in(["`null`", "'Who?'"]) == ["Who?"]


def test_the_numbers_of_a_list_are_no_part_of_its_queries():
    assert queries_in(["1. Who wrote it?", '2) "Where is #1?"']) == ["Who wrote it?", "Where is #1?"]
    assert queries_in(["- Who wrote it?", "- Where?"]) == ["Who wrote it?", "Where?"]
    assert queries_in(["1. FC Köln: when founded?", "Who was #1?"]) == ["1. FC Köln: when founded?", "Who was #1?"]
    assert queries_in(["1. FC Köln: when founded?"]) == ["1. FC Köln: when founded?"]
