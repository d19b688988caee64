"""Comparisons that are made by rules."""

import pytest

from questree.programs.comparisons import outcome, read_comparison, settle


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        (["earliest", "A: 3 May 1911", "B: 1912"], "A"),
        (["latest", "A: 3 May 1911", "B: June 1911"], "B"),
        (["earliest", "A: May 3, 1911", "B: 2 May 1911"], "B"),
        (["earliest", "A: 1911", "B: 3 May 1911"], None),  # the year alone does not decide
        (["latest", "A: 1911", "B: long ago"], None),
        (["largest", "A: 1,200 m", "B: 990 m"], "A"),
        (["smallest", "The Barge: Part 2: 1,200", "B: 990.5", "C: 2000"], "B"),
        (["largest", "A: 1,200 m", "B: 990 feet"], None),
        (["longest", "A: 3 May 1879 to 1951", "B: 1880–1944"], "A"),
        (["shortest", "A: 3 May 1879 to 4 June 1951", "B: May 2, 1879 - 4 June 1951"], "A"),
        (["longest", "A: 1879 to 1951", "B: 1880 to 1951"], None),  # without days it may be either
        (["longest", "A: 1879 to 1951", "B: 70 years"], None),
        (["same", "A: Velian", "B: velian"], "yes"),
        (["same", "A: Velian", "B: Tarnish"], None),  # they may mean the same
        (["same", "A: 3 May 1911", "B: 1911"], "yes"),
        (["same", "A: 1911", "B: 1912"], "no"),
    ],
)
def test_the_outcome(lines: list[str], result: str | None):
    comparison = read_comparison(lines)
    assert comparison is not None
    assert outcome(comparison) == result


@pytest.mark.parametrize(
    "lines", [[], ["latest"], ["latest", "A: 1"], ["tallest", "A: 1", "B: 2"], ["same", "A", "B: 1"]]
)
def test_what_is_no_comparison(lines: list[str]):
    assert read_comparison(lines) is None


@pytest.mark.parametrize(
    ("answer", "lines", "settled"),
    [
        ("B", ["earliest", "A: 1911", "B: 1912"], "A"),
        ("the painter A", ["earliest", "A: 1911", "B: 1912"], "the painter A"),
        ("1911", ["earliest", "A: 1911", "B: 1912"], "1911"),  # it is not one of them that is asked for
        ("Yes", ["same", "A: 1911", "B: 1912"], "no"),
        ("they differ", ["same", "A: 1911", "B: 1912"], "they differ"),
    ],
)
def test_an_answer_that_the_values_contradict_is_replaced(answer: str, lines: list[str], settled: str):
    comparison = read_comparison(lines)
    assert comparison is not None
    assert settle(answer, comparison) == settled
