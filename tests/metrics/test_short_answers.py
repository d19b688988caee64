"""Short answers: the public definitions, on hand-made cases, against DSPy's own, and on real answers."""

import json
from pathlib import Path

import pytest
from dspy.evaluate.metrics import EM, HotPotF1, normalize_text
from hypothesis import example, given
from hypothesis import strategies as st

from questree.common import patterns
from questree.common.patterns import EndlessPatternError
from questree.metrics import cover_exact_match, exact_match, f1, normalise, pattern_in, pattern_match, stands_in

texts = st.text(max_size=40) | st.sampled_from(["yes", "no", "the No.", "An apple", "apple pie", "noanswer", ""])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Eiffel  Tower!", "eiffel tower"),
        ("a man, an apple", "man apple"),
        ("U.S.A.", "usa"),
        ("theatre", "theatre"),
        ("García", "garcía"),
        ("Garci\u0301a", "garcía"),
        ("André the Giant", "andré giant"),
        ("Bahá'í", "baháí"),
        ("Cafe\u0301", normalise("Café")),
        ("the", ""),
    ],
)
def test_normalise_is_squads(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "golds", "em", "score"),
    [
        ("the Eiffel Tower", ["Eiffel Tower"], True, 1.0),
        ("Eiffel Tower is in Paris", ["Paris"], False, 1 / 3),
        ("Barack Obama", ["Obama", "Barack Hussein Obama"], False, 0.8),
        ("New New York", ["New York"], False, 0.8),
        ("London", ["Paris"], False, 0.0),
        ("no one", ["no"], False, 0.0),
        ("yes it is", ["yes"], False, 0.0),
        ("yes", ["Yes."], True, 1.0),
    ],
)
def test_exact_match_and_f1(answer: str, golds: list[str], em: bool, score: float) -> None:
    assert exact_match(answer, golds) is em
    assert f1(answer, golds) == pytest.approx(score)


plain_texts = texts.filter(str.isascii)  # DSPy decomposes letters, and takes the end of "García" for an article


@given(plain_texts, st.lists(plain_texts, min_size=1, max_size=3))
@example("the", ["a"])
def test_they_are_dspys_exact_match_and_hotpot_f1(answer: str, golds: list[str]) -> None:
    assert normalise(answer) == normalize_text(answer)
    if normalise(answer):  # of what has no normal form, each of the public scripts makes something else
        assert exact_match(answer, golds) == EM(answer, golds)
        assert f1(answer, golds) == pytest.approx(HotPotF1(answer, golds))


@pytest.mark.parametrize(
    ("answer", "gold", "words", "characters"),
    [
        ("It was Alfred Nobel, in 1867.", "Alfred Nobel", True, True),
        ("3,845 miles", "45", False, True),
        ("unknown", "no", False, True),
        ("video games", "video game", False, True),
        ("in the United States of America", "the United States", True, True),
        ("Alfred", "Alfred Nobel", False, False),
        ("anything", "the", False, False),
        ("the 1982–83 season", "1982-83", True, True),
        ("by Scarlett O’Hara", "O'Hara", True, True),
        ("Paris — the capital", "Paris", True, True),
    ],
)
def test_cover_exact_match(answer: str, gold: str, words: bool, characters: bool) -> None:
    assert cover_exact_match(answer, [gold]) is words
    assert cover_exact_match(answer, [gold], whole_words=False) is characters


@pytest.mark.parametrize(
    ("answer", "golds", "equal", "covered"),
    [
        ("A", ["A"], True, True),
        ("a.", ["A"], True, True),
        ("It is type A.", ["A"], False, True),
        ("the", ["A"], False, False),
        ("It was a man.", ["A"], False, False),
        ("The The", ["The The"], True, True),
        ("the band The The, of London", ["The The"], False, True),
        ("The Who", ["The The"], False, False),
        ("!!!", ["!!!"], True, True),
        ("*", ["a rotationally symmetric saltire", "the symbol ×", "*"], True, False),
        ("A dog", ["a rotationally symmetric saltire", "A"], False, False),
        ("", ["*"], False, False),
    ],
)
def test_an_answer_of_articles_or_signs_alone_is_compared_as_it_is_written(answer, golds, equal, covered):
    assert exact_match(answer, golds) is equal
    assert f1(answer, golds) == equal
    assert cover_exact_match(answer, golds) is covered
    assert cover_exact_match(answer, golds, whole_words=False) is covered


@given(texts, st.lists(texts, min_size=1, max_size=3))
def test_exact_match_implies_cover_implies_containment_of_characters(answer: str, golds: list[str]) -> None:
    covered = cover_exact_match(answer, golds)
    if normalise(answer) and exact_match(answer, golds):
        assert covered
    if covered:
        assert cover_exact_match(answer, golds, whole_words=False)


@given(texts.filter(normalise), st.text(alphabet="xyz ,", max_size=10))
def test_words_around_a_covered_answer_change_nothing(gold: str, around: str) -> None:
    assert cover_exact_match(f"{around} {gold} {around}", [gold])


@given(texts, st.lists(texts, min_size=1, max_size=3))
def test_f1_lies_between_0_and_1_and_more_golds_never_lower_it(answer: str, golds: list[str]) -> None:
    assert 0 <= f1(answer, golds[:1]) <= f1(answer, golds) <= 1


def test_patterns_are_found_anywhere_in_any_case_and_match_from_the_beginning() -> None:
    golds = [r"Turk(ey|ish)", r"^\s*Mass\.\s*$"]
    assert pattern_in("it rises in TURKEY", golds)
    assert not pattern_match("it rises in Turkey", golds)
    assert pattern_match("Turkey, mostly", golds)
    assert pattern_in("Mass.", golds)
    assert not pattern_in("Mass. and Maine", golds)


def test_recorded_answers_score_as_published(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "recorded.jsonl").read_text(encoding="utf-8").splitlines()]
    pairs = [(row["recording"]["prediction"], row["answers"]) for row in rows]
    assert len(pairs) == 390
    in_characters = sum(cover_exact_match(answer, golds, whole_words=False) for answer, golds in pairs)
    assert round(in_characters / 390, 2) == 0.48
    assert sum(cover_exact_match(answer, golds) for answer, golds in pairs) == in_characters - 4


ENDLESS = r"^((a|\w)+,?)+$"


def test_a_pattern_that_would_be_matched_for_ever_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.05)
    for matched in (pattern_in, pattern_match):
        with pytest.raises(EndlessPatternError, match=r"was not matched in 0 s; write it without repetitions"):
            matched("a" * 200 + "!", [ENDLESS])


def test_a_pattern_has_no_more_repetitions_than_a_person_writes() -> None:
    patterns.compiled(r"(spanish.*){2}|\d{1,4}|\{\}|a{2,}")
    for pattern in ("(" * 9 + "a{1,1000}" + "){1,1000}" * 9, "a{99}{99}{99}", "a{100000}", "("):
        with pytest.raises(ValueError, match=r"repetitions|unterminated|multiple repeat"):
            patterns.compiled(pattern)


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("弗朗茨·卡夫卡出生于布拉格。", "布拉格", True),
        ("《变形记》是弗兰兹·卡夫卡的小说。", "弗兰兹・卡夫卡。", True),
        ("フランツ・カフカはプラハで生まれた", "プラハ", True),
        ("卡夫卡出生于布拉格。", "维也纳", False),
        ("卡夫卡出生于布拉格。", "。", False),
        ("Pragues", "Prague", False),
    ],
)
def test_where_no_spaces_part_words_none_are_asked_for(text, phrase, held):
    assert stands_in(text, phrase) == held
