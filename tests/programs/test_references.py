"""``[n]`` is always ``references[n-1]``."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from questree.common.placeholders import fill_in
from questree.metrics import marked_fragments, without_marks
from questree.programs.references import settle_marks, supported_by, without_loose_marks
from questree.retrieval import Passage


def anywhere(fragment: str, passage: Passage) -> bool:
    return True


A, B, C = (Passage(id=name, text=name) for name in "abc")


DIGITS = "1" * 5000


@pytest.mark.parametrize(
    ("text", "content", "references"),
    [
        ("One [1]. Two [3]. Three [7]. Zero [0].", "One [1]. Two [2]. Three. Zero.", [A, C]),
        ("First [3] last [2].", "First [1] last [2].", [C, B]),  # numbered in the order of their marks
        ("Odd [1[9]].", "Odd [1].", [A]),  # what is left when a mark is removed is settled too
        ("All [2-999], none [9-7].", "All [1][2], none.", [B, C]),  # of as many passages as there are
        (f"One [1]. Two [{DIGITS}]. Three [1, {DIGITS}].", "One [1]. Two. Three [1].", [A]),
    ],
    ids=["nowhere and unmarked", "order", "a mark in a mark", "a range", "digits without end"],
)
def test_marks_and_references_are_settled(text, content, references):
    assert settle_marks(text, [A, B, C], anywhere) == (content, references)


def test_digits_without_end_are_no_number_of_a_passage():
    assert marked_fragments(f"One [1]. Two [{DIGITS}].") == [("One", [1])]
    assert fill_in(f"Who wrote #{DIGITS}?", ["Kafka"]) == f"Who wrote #{DIGITS}?"


JOINT = ("[1, 2]", "[1;2]", "[1-2]", "[ 1 – 2 ]", "[1 and 2]", "[Passages 1 & 2]", "【1】【2】", "[^1][#2]")


@pytest.mark.parametrize("mark", [*JOINT, "【1†source】[source 2]"])
def test_joint_marks_are_parted(mark):
    assert settle_marks(f"Both {mark}.", [A, B], anywhere) == ("Both [1][2].", [A, B])
    assert without_loose_marks(f"Both {mark}.", 0) == without_marks(f"Both {mark}.") == "Both."


@pytest.mark.parametrize("heading", ["Sources:", "**References**", "## Citations"])
@pytest.mark.parametrize("line", ["[{}] Title", "- [{}]: Title", "[Passage {}] Title"])
def test_a_list_of_sources_at_the_end_is_left_out(heading, line):
    listed = "\n".join(line.format(number) for number in (1, 2))
    assert settle_marks(f"One [1]. Two [2].\n\n{heading}\n{listed}\n", [A, B], anywhere) == (
        "One [1]. Two [2].",
        [A, B],
    )


@pytest.mark.parametrize("text", ["The war [1914–1918].", "The band [sic] and [its 2 songs].", "He won [2:1]."])
def test_other_words_in_brackets_stay(text):
    assert settle_marks(text, [A, B], anywhere)[0] == text


def test_a_mark_whose_fragment_may_not_cite_the_passage_goes_with_its_reference():
    def names_it(fragment: str, passage: Passage) -> bool:
        return passage.title in fragment

    titled = [Passage(id=name, title=name, text="text") for name in "XYZ"]
    content, references = settle_marks("Of X [2][1]. Of Y [3]. Of Z [3].", titled, names_it)
    assert content == "Of X [1]. Of Y. Of Z [2]."
    assert references == [titled[0], titled[2]]


def test_without_steps_names_and_numbers_tell_what_may_be_cited():
    passage = Passage(id="1", title="Kafka", text="He was born in Prague.")
    belongs = supported_by("Where was Kafka born?")
    assert belongs("Kafka was born in Prague", passage)
    assert not belongs("Kafka was born in Vienna", passage)


@given(st.lists(st.one_of(st.text(alphabet="ab []1,", max_size=5), st.integers(0, 5).map(lambda n: f"[{n}]"))))
def test_every_mark_has_its_reference_and_every_reference_its_mark(parts):
    content, references = settle_marks("".join(parts), [A, B, C], anywhere)
    marks = {int(n) for n in re.findall(r"\[(\d+)\]", content)}
    assert marks == set(range(1, len(references) + 1))
