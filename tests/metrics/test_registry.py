"""Metrics by name, as DSPy calls them."""

from types import SimpleNamespace

import dspy
import pytest

from questree.common.errors import QuestreeError
from questree.metrics import METRICS, metric, metric_for, passage_fingerprint


def gold(*answers: str, **fields: object) -> SimpleNamespace:
    return SimpleNamespace(answers=list(answers), **fields)


def said(answer: str | None, failure: object = None) -> SimpleNamespace:
    return SimpleNamespace(answer=answer, failure=failure)


@pytest.mark.parametrize(
    ("name", "answer", "right", "score"),
    [
        ("cover-em", "it was Alfred Nobel", "Nobel", 1.0),
        ("cover-em-characters", "Nobels", "Nobel", 1.0),
        ("em", "it was Alfred Nobel", "Nobel", 0.0),
        ("f1", "Alfred Nobel", "Nobel", 2 / 3),
        ("yes-no", "Yes, it is", "yes", 1.0),
        ("label", "supported", "SUPPORTS", 1.0),
        ("rouge-l", "police ended the gunman", "police killed the gunman", 0.75),
    ],
)
def test_each_metric_scores_by_its_own_measure(name: str, answer: str, right: str, score: float) -> None:
    assert metric(name)(gold(right), said(answer)) == pytest.approx(score)


def test_of_several_samples_the_best_can_be_scored() -> None:
    drawn = SimpleNamespace(answer="Curie", samples=["Curie", "", "Alfred Nobel", "Curie"], failure=None)
    assert [metric(name)(gold("Alfred Nobel"), drawn) for name in ("em", "em-best-sample")] == [0.0, 1.0]
    assert metric("f1-best-sample")(gold("Nobel"), drawn) == pytest.approx(2 / 3)
    assert metric("yes-no-best-sample")(gold("yes"), said("yes")) == 1.0
    drawn.failure = "refused"
    assert metric("em-best-sample")(gold("Alfred Nobel"), drawn) == 0.0


def test_with_a_trace_it_answers_yes_or_no_and_little_overlap_is_no_success() -> None:
    few, many = said("Nobel and six other words that differ"), said("Alfred Nobel")
    f1 = metric("f1")
    assert f1(gold("Nobel"), few) > 0
    assert f1(gold("Nobel"), few, trace=[]) is False
    assert f1(gold("Nobel"), many, trace=[]) is True
    assert (
        metric("rouge-l")(gold("police killed the gunman today"), said("today it was seen by us all"), trace=[])
        is False
    )


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_failed_or_empty_prediction_is_never_right(name: str) -> None:
    example = gold("yes", answer_style="yes-no", gold_titles=["Mill"], gold_sentences=[{**MILL, "supporting": [1]}])
    for prediction in (said("yes", failure="refused"), said(""), said(None), SimpleNamespace()):
        assert metric(name)(example, prediction) == 0
        assert metric(name)(example, prediction, trace=[]) is False


@pytest.mark.parametrize("name", sorted(METRICS))
def test_scores_are_floats_and_verdicts_are_booleans(name: str) -> None:
    prediction = said("yes")
    example = gold("yes", answer_style="short", gold_titles=["Mill"], gold_sentences=[{**MILL, "supporting": [1]}])
    assert type(metric(name)(example, prediction)) is float
    assert type(metric(name)(example, prediction, trace=[])) is bool


@pytest.mark.parametrize("name", ["cover-em", "cover-em-characters", "em", "f1"])
def test_gold_answers_that_are_patterns_are_matched_as_patterns(name: str) -> None:
    example = gold("Turk(ey|ish)", answers_are_regex=True)
    assert metric(name)(example, said("Turkish")) == 1
    assert metric(name)(example, said("Turk(ey|ish)")) == 0


def test_by_style_scores_each_question_by_its_own_style() -> None:
    mixed = metric_for("mixed")
    assert mixed(gold("no", answer_style="yes-no"), said("There is no doubt: yes")) == 0
    assert mixed(gold("no", answer_style="short"), said("There is no doubt: yes")) == 1
    assert mixed(gold("SUPPORTS", answer_style="label"), said("true")) == 1
    long = gold("police killed the gunman", answer_style="long")
    assert mixed(long, said("police ended the gunman")) == pytest.approx(0.75)
    assert mixed(long, said("police ended the gunman"), trace=[]) is True


def test_it_scores_dspys_own_objects() -> None:
    example = dspy.Example(question="?", answers=["Nobel"]).with_inputs("question")
    assert metric("cover-em")(example, dspy.Prediction(answer="Alfred Nobel", failure=None)) == 1
    assert metric("cover-em")(example, dspy.Prediction(answer="Alfred Nobel")) == 1


def test_a_wrong_name_lists_what_exists_and_the_nearest() -> None:
    with pytest.raises(QuestreeError, match=r"Did you mean 'rouge-l'.*cover-em, .*yes-no"):
        metric("rouge")
    with pytest.raises(QuestreeError, match="no answer style 'essay'"):
        metric_for("essay")


def passage(title: str, text: str) -> SimpleNamespace:
    return SimpleNamespace(id=title, title=title, text=text)


def test_answer_recall_looks_into_what_was_seen() -> None:
    seen = [passage(f"P{n}", "nothing") for n in range(5)] + [passage("Kafka", "Born in Prague.")]
    prediction = dspy.Prediction(answer="", passages=seen[:1], seen=seen)
    gold = dspy.Example(answers=["Prague", "Praha"])
    assert (metric("answer-recall@5")(gold, prediction), metric("answer-recall")(gold, prediction)) == (0.0, 1.0)
    assert metric("answer-recall")(dspy.Example(answers=["Pra"]), prediction) == 0.0
    pattern = dspy.Example(answers=["Prag(ue)?"], answers_are_regex=True)
    assert metric("answer-recall")(pattern, prediction) == 1.0
    assert metric("answer-recall")(gold, dspy.Prediction(answer="Prague", passages=[])) == 0.0


def test_support_f1_compares_the_cited_passages_with_the_gold_ones() -> None:
    cited = [passage("A", "one"), passage("B", "two")]
    prediction = dspy.Prediction(answer="", references=cited)
    support = metric("support-f1")
    assert support(dspy.Example(answers=[], gold_passages=["A", "C", "D"]), prediction) == pytest.approx(0.4)
    assert support(dspy.Example(answers=[], gold_titles=["a", "b"]), prediction) == 1.0
    by_text = dspy.Example(answers=[], gold_passages=[passage_fingerprint("A", "another part")], gold_titles=["A"])
    assert support(by_text, prediction) == 0.0
    with pytest.raises(QuestreeError, match="has neither"):
        support(dspy.Example(answers=[]), prediction)


MILL = {
    "title": "Mill",
    "text": "It grinds. Osmund built it in 1820.",
    "sentences": ["It grinds.", "Osmund built it in 1820."],
}
TOWN = {"title": "Town", "text": "Larkhall lies on the Wend.", "sentences": ["Larkhall lies on the Wend."]}


def test_supporting_facts_are_the_sentences_that_cited_words_rest_on() -> None:
    told = [{**MILL, "supporting": [1]}, {**TOWN, "supporting": [0]}]
    gold = dspy.Example(answers=[], gold_sentences=told)
    cited = [passage("Mill", MILL["text"]), passage("Town", "Another text of that title names Larkhall.")]
    answer = dspy.Prediction(
        answer="the Wend", references=cited, final_content="Osmund built the mill [1]. It stands in Larkhall [2]."
    )
    found = {name: metric(f"sp-{name}")(gold, answer) for name in ("em", "f1", "precision", "recall")}
    assert found == {"em": 0.0, "f1": 0.5, "precision": 0.5, "recall": 0.5}
    answer.references = [cited[0], passage("Town", TOWN["text"])]
    assert metric("sp-em")(gold, answer) == 1.0
    answer.final_content = "Osmund built the mill in Larkhall."  # cites nothing
    assert metric("sp-f1")(gold, answer) == 0.0
    with pytest.raises(QuestreeError, match="sp-em needs supporting sentences"):
        metric("sp-em")(dspy.Example(answers=[], gold_titles=["Mill"]), answer)


@pytest.mark.parametrize("name", ["support-f1", "sp-em", "sp-f1", "sp-precision", "sp-recall"])
def test_a_question_without_gold_is_told_whatever_was_answered(name) -> None:
    for nothing in (dspy.Prediction(answer="", references=[]), dspy.Prediction(answer="", failure="deadline")):
        with pytest.raises(QuestreeError, match=f"{name} needs"):
            metric(name)(dspy.Example(answers=["the Wend"]), nothing)
