"""SKC and AMP on answers whose marks were judged by hand."""

from types import SimpleNamespace

import pytest

from questree.metrics import (
    citation_scores,
    keep_marks,
    marked_fragments,
    marking_accuracy,
)
from questree.metrics import supported_knowledge_count as skc
from questree.metrics.citations import citation_precision, citation_recall, reference_marks

CONTENT = "Dr. Curie was born in Warsaw [1]. She taught in Paris. The Seine flows there. [2] It is long [3]."
REFERENCES = ["Marie Curie was born in Warsaw.", "Paris lies on the Seine.", "The Seine is 777 km long."]


def test_a_fragment_ends_at_its_mark_and_begins_at_its_sentence() -> None:
    assert marked_fragments(CONTENT) == [
        ("Dr. Curie was born in Warsaw", [1]),
        ("The Seine flows there.", [2]),
        ("It is long", [3]),
    ]
    assert marked_fragments("J. R. R. Tolkien wrote it [1][2], in Oxford [3]") == [
        ("J. R. R. Tolkien wrote it", [1, 2]),
        ("in Oxford", [3]),
    ]
    assert marked_fragments("No marks.") == []


@pytest.mark.parametrize("between", ["", ", ", " and ", ". ", ".\n", "; and "])
def test_marks_without_words_between_them_end_the_same_fragment(between: str) -> None:
    content = f"She was born in Warsaw [1]{between}[2] It is long [3]."
    assert marked_fragments(content) == [("She was born in Warsaw", [1, 2]), ("It is long", [3])]
    paris = ["She was born in Warsaw.", "Paris lies on the Seine.", "It is long."]
    assert citation_precision(content, paris, "Who?") == pytest.approx(2 / 3)


def test_a_mark_without_words_at_it_supports_nothing() -> None:
    assert marked_fragments("[1]") == [("", [1])]
    assert citation_precision("[1]", ["Born in Warsaw."], "Where?") == 0
    assert keep_marks("See: [1]", lambda fragment, _: fragment != "See:") == "See:"


@pytest.mark.parametrize(
    "content",
    [
        "[1] Kafka was born in Prague. [2] The river is the Vltava.",
        "1. [1] Kafka was born in Prague.\n2. [2] The river is the Vltava.",
        "Passage [1] says Kafka was born in Prague. Passage [2] says the river is the Vltava.",
        "According to [1], Kafka was born in Prague. By the passage [2], the river is the Vltava.",
        "According to passage [1] Kafka was born in Prague. [2] says the river is the Vltava.",
    ],
)
def test_a_mark_before_its_words_is_for_them(content: str) -> None:
    told, numbers = zip(*marked_fragments(content), strict=True)
    assert numbers == ([1], [2])
    assert told[0].endswith("Kafka was born in Prague.")
    assert told[1].endswith("he river is the Vltava.")
    references = ["Kafka, of Prague.", "The Vltava."]
    assert citation_precision(content, references, "Which river?") == 1
    assert citation_precision(content, references[::-1], "Which river?") == 0
    assert keep_marks(content, lambda fragment, number: ("Kafka" in fragment) == (number == 1)) == content


def test_a_full_stop_between_marks_stays() -> None:
    assert keep_marks("Born in Warsaw [1]. [2] It is long.", lambda _, number: True) == (
        "Born in Warsaw [1][2]. It is long."
    )
    assert keep_marks("Born in Warsaw [1]. [2] It is long.", lambda _, number: number == 1) == (
        "Born in Warsaw [1]. It is long."
    )
    assert keep_marks("Born in Warsaw [1]. [2] It is long.", lambda *_: False) == "Born in Warsaw. It is long."


def test_skc_counts_fragments_with_a_reference() -> None:
    assert skc(CONTENT, 3) == 3
    assert skc(CONTENT, 1) == 1
    assert skc("Tolkien wrote it [1][2].", 2) == 1
    assert skc("[1]", 1) == 0
    assert skc("Nothing.", 3) == 0


def test_amp_wants_the_answer_in_the_fragment_and_in_the_reference() -> None:
    # the second mark stands behind the wrong sentence, the third behind one without the answer
    assert marking_accuracy(CONTENT, REFERENCES, [["Warsaw"], ["Paris"], ["777 km"]]) == pytest.approx(1 / 3)
    assert marking_accuracy(CONTENT, REFERENCES, [["Warsaw"], ["the Seine"], ["long"]]) == 1
    assert marking_accuracy(CONTENT, REFERENCES[::-1], [["Warsaw"], ["the Seine"], ["long"]]) == pytest.approx(1 / 3)


def test_amp_counts_a_mark_that_points_nowhere_and_leaves_out_one_of_a_passage_without_an_answer() -> None:
    assert marking_accuracy("Warsaw [1]. Warsaw [7].", REFERENCES[:1], [["Warsaw"]]) == 0.5
    assert marking_accuracy("Warsaw.", REFERENCES[:1], [["Warsaw"]]) is None
    assert marking_accuracy("Warsaw [1]. The Seine [2].", REFERENCES[:2], [["Warsaw"], []]) == 1
    assert marking_accuracy("Warsaw [1]. The Seine [2].", REFERENCES[:2], [[], []]) is None


def test_amp_wants_answers_for_each_reference() -> None:
    with pytest.raises(ValueError, match="3 references but 1 list"):
        marking_accuracy(CONTENT, REFERENCES, [["Warsaw"]])


def test_scores_of_a_prediction_come_from_its_tree_and_passages() -> None:
    born = SimpleNamespace(id="p1", title="Curie", text="Marie Curie was born in Warsaw.")
    flows = SimpleNamespace(id="p2", title="Paris", text="It lies on the Seine.")
    nodes = [SimpleNamespace(answer="Warsaw", passage=born), SimpleNamespace(answer=None, passage=flows)]
    prediction = SimpleNamespace(
        failure=None,
        final_content="Born in Warsaw [1]. On the Seine [2].",
        references=[born, flows],
        passages=[born, flows],
        tree=SimpleNamespace(nodes=nodes, question="Which river does Paris lie on?"),
    )
    assert citation_scores(prediction) == {"skc": 2, "amp": 1, "citation_precision": 1, "citation_recall": 1}
    prediction.references = [flows, born]
    assert citation_scores(prediction) == {"skc": 2, "amp": 0, "citation_precision": 0, "citation_recall": 0}
    assert set(citation_scores(SimpleNamespace(failure="refused")).values()) == {None}


def test_only_the_marks_that_belong_to_their_fragment_are_kept() -> None:
    judged = []

    def keeps(fragment: str, number: int) -> bool:
        judged.append((fragment, number))
        return number != 2

    assert keep_marks("Born in Warsaw [1][2]. It is long. [2] In 1867 [3], so.", keeps) == (
        "Born in Warsaw [1]. It is long. In 1867 [3], so."
    )
    assert judged == [("Born in Warsaw", 1), ("Born in Warsaw", 2), ("It is long.", 2), ("In 1867", 3)]
    assert keep_marks("No marks.", keeps) == "No marks."


def test_precision_is_the_share_of_marks_whose_reference_supports_their_fragment() -> None:
    assert citation_precision("Warsaw [1]. The Seine [2]. The Seine [1].", REFERENCES, "") == pytest.approx(2 / 3)
    assert citation_precision("Warsaw [1][2].", REFERENCES, "") == 0.5
    assert citation_precision("Warsaw [7].", REFERENCES, "") == 0
    assert citation_precision("Warsaw.", REFERENCES, "") is None


def test_recall_is_the_share_of_telling_sentences_with_a_mark_that_supports_them() -> None:
    assert citation_recall("Warsaw it was [1]. Paris lies there. So it is.", REFERENCES, "") == 0.5
    assert citation_recall("Warsaw it was. [1] Paris lies there [3].", REFERENCES, "") == 0.5
    assert citation_recall("Warsaw it was [2][1].", REFERENCES, "") == 1
    assert citation_recall("So it is [1].", REFERENCES, "") is None


@pytest.mark.parametrize(
    "end",
    [
        "No passage names Paris.",
        "So the answer is Warsaw.",
        "Thus, it was Warsaw.",
        "The answer: Warsaw.",
        "A guess: Warsaw.",
    ],
)
def test_recall_does_not_count_conclusions(end: str) -> None:
    assert citation_recall(f"Warsaw it was [1]. {end}", REFERENCES, "") == 1


def test_recall_counts_what_is_said_of_the_answer_to_a_step() -> None:
    assert citation_recall("The answer to the first question is Warsaw. A guess: Paris.", REFERENCES, "") == 0


def test_the_numbers_of_a_list_are_neither_sentences_nor_names():
    content = "1. Kafka was born in Prague [1].\n2. Prague lies on the Vltava [2]."
    references = ["Kafka, of Prague.", "Prague: on the Vltava."]
    assert citation_recall(content, references, "Which river?") == 1
    assert [fragment for fragment, _ in marked_fragments(content)] == [
        "Kafka was born in Prague",
        "Prague lies on the Vltava",
    ]


def test_a_mark_that_ends_a_name_alone_is_shown_with_what_its_sentence_says_of_it() -> None:
    named, other = reference_marks("Allen Loy [1] and Jo Roe, who sails [1], are coopers. So: A.")
    passage = "The daughter of Allen Loy is Ada Loy. Allen Loy is one of the coopers. A friend sails."
    assert named.sentence == "Allen Loy  and Jo Roe, who sails , are coopers."
    assert named.shown(passage, "Allen Loy") == ["Allen Loy is one of the coopers."]
    assert other.shown(passage, "Allen Loy") == ["A friend sails."]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Cy Moor is a cooper [2]. Ann Lee is one, too [1], but old.", ["The occupation of Ann Lee is cooper."]),
        ("The texts on Ann Lee [1] and Jo Roe [2] name no friends.", ["The friends of Ann Lee are Bo Ek and Jo Roe."]),
        ("Her friends are Ann Lee and Bo Ek [2], who are all women [1].", []),
        ("Cy Moor is a cooper [2]. Ann Lee is a woman [1].", []),
        (
            "The person whose occupation is cooper is Ann Lee [1], with Jo Roe [2].",
            ["The occupation of Ann Lee is cooper."],
        ),
        (
            "Ann Lee is female and has a friend, Jo Roe [1].",
            ["The friends of Ann Lee are Bo Ek and Jo Roe.", "Ann Lee is female."],
        ),
        ("Cy Moor is a cooper [2]. It is so [1].", ["The occupation of Ann Lee is cooper."]),
    ],
)
def test_a_passage_is_shown_with_a_sentence_that_holds_what_is_marked_or_with_none(content, told):
    passage = "The friends of Ann Lee are Bo Ek and Jo Roe. Ann Lee is female. The occupation of Ann Lee is cooper."
    (mark,) = [one for one in reference_marks(content) if one.number == 1]
    assert mark.shown(passage, "Ann Lee") == told


@pytest.mark.parametrize(
    "content",
    [
        "The hobby of Ann Lee is tea. [1]. So the answer is tea.",
        "She is old. The hobby of Ann Lee is tea.[1][2]",
        "The hobby of Ann Lee is tea [1].",
        "[1] The hobby of Ann Lee is tea. [2] She is old.",
    ],
)
def test_a_mark_behind_the_full_stop_shows_what_supports_the_sentence_before(content):
    passage = "The mother of Ann Lee is Bo Ek. The hobby of Ann Lee is tea. The wife of Bo Ek is Jo Roe."
    assert reference_marks(content)[0].shown(passage, "Ann Lee") == ["The hobby of Ann Lee is tea."]


def test_a_fragment_that_says_something_of_the_title_shows_what_says_it_and_not_what_its_sentence_goes_on_to_say():
    passage = "The friends of Ann Lee are Bo Ek and Jo Roe. The occupation of Ann Lee is forces officer."
    told = reference_marks("Ann Lee is the forces officer [1], and her friends are Bo Ek and Jo Roe [1].")
    assert [one.shown(passage, "Ann Lee") for one in told] == [[passage[45:]], [passage[:44]]]
