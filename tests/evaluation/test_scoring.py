"""Asking and scoring are two steps: what was answered can be scored again, and no metric loses an answer."""

import threading

import dspy
import pytest
from fakes import ScriptedEngine
from parrot import LOST, RIGHT, WRONG, Parrot, example, one_by_one, right
from run_files import change, rows

from questree.common.errors import QuestreeError
from questree.evaluation.comparison.comparison import compare
from questree.evaluation.kept_run import begin
from questree.evaluation.record_scores import MetricError, score
from questree.evaluation.records import Record
from questree.evaluation.retrieval_measures import retrieval_scores
from questree.evaluation.run import Interrupted, evaluate
from questree.evaluation.run_file import writing
from questree.evaluation.stored_runs import read_records
from questree.lm.limits import RunPolicy
from questree.lm.spent import Spent
from questree.metrics import metric
from questree.programs.program import answered
from questree.retrieval import Passage

QUESTIONS = [RIGHT, WRONG, example("d", "say right again", ("again",))]


class Silent(Parrot):
    """Nobody may ask it."""

    def reason(self, tree, answer_style):
        raise AssertionError(f"{tree.question} was asked")


def length(gold, prediction, trace=None) -> float:
    return float(len(prediction.answer))


def f1(gold, prediction, trace=None) -> float:
    return 1.0


RECORDS = "SELECT id, record, details FROM questions"


def broken(gold, prediction, trace=None) -> float:
    if prediction.answer == "wrong":
        raise ZeroDivisionError("oh")
    return 1.0


def test_another_metric_scores_what_was_answered_and_asks_nothing(tmp_path):
    evaluate(Parrot(), QUESTIONS, right, out=tmp_path)
    lines = rows(tmp_path, RECORDS)
    found = evaluate(Silent(), QUESTIONS, [length, metric("f1")], out=tmp_path)
    assert found.metric == "length"
    assert [record.scores for record in found.records] == [{"length": 5.0, "f1": score} for score in (1.0, 0.0, 1.0)]
    assert rows(tmp_path, RECORDS) == lines
    assert [list(record.scores) for record in read_records(tmp_path)] == [["right", "length", "f1"]] * 3
    assert evaluate(Silent(), QUESTIONS, right, out=tmp_path).score.mean == pytest.approx(2 / 3)


def test_a_metric_of_ones_own_scores_anew_what_it_scored_before_it_was_changed(tmp_path):
    points = [1.0]

    def points_for(gold, prediction, trace=None):
        return points[0]

    assert evaluate(Parrot(), QUESTIONS, [points_for, metric("f1")], out=tmp_path).score.mean == 1.0
    lines = rows(tmp_path, "SELECT * FROM scores")
    evaluate(Silent(), QUESTIONS, [points_for, metric("f1")], out=tmp_path)
    assert rows(tmp_path, "SELECT * FROM scores") == lines  # nothing was changed
    points[0] = 0.25
    assert evaluate(Silent(), QUESTIONS, points_for, out=tmp_path).score.mean == 0.25
    assert [record.scores["points_for"] for record in read_records(tmp_path)] == [0.25] * 3


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ("f1", r"'f1' is no metric.*metric\(NAME\)"),
        (["f1"], "'f1' is no metric"),
        ([], "There is no metric"),
        (f1, "'f1' is the name of a metric of ours: give yours another name"),
        ([length, lambda *_: 1.0, lambda *_: 0.0], "Two metrics are called '<lambda>'"),
    ],
)
@pytest.mark.parametrize("ask", [evaluate, lambda program, *rest: compare({"it": program}, *rest)])
def test_metrics_that_cannot_score_are_told_before_anything_is_asked(metrics, said, ask):
    with pytest.raises(QuestreeError, match=said):
        ask(Silent(), QUESTIONS, metrics)


@pytest.mark.parametrize("answers", [{}, {"answers": None}])
def test_questions_without_gold_answers_are_told_before_anything_is_asked(answers):
    bare = dspy.Example(id="bare", question="say what", **answers).with_inputs("question")
    with pytest.raises(QuestreeError, match=r"'bare' has no gold answers, and f1 goes by them.*`answers`"):
        evaluate(Silent(), [RIGHT, bare], [length, metric("f1")])
    assert evaluate(Parrot(), [bare], length).score.mean == 4.0


def test_lists_and_absent_answers_are_scored_and_stored_with_their_gold(tmp_path):
    listed = example("l", "say Ann", ("Ann Lee", "Bo Ek"), needed=[["Ann Lee", "Ann"], ["Bo Ek"]])
    absent = example("none", "say something", ())
    found = evaluate(Parrot(), [RIGHT, listed, absent], [metric("by-style"), metric("complete")], out=tmp_path)
    assert [record.scores["by-style"] for record in found.records] == [1.0, pytest.approx(2 / 3), 0.0]
    records = {record.id: record for record in read_records(tmp_path)}  # in the order in which they ended
    stored, none = records["l"], records["none"]
    assert (stored.needed, stored.gold_answer) == ((("Ann Lee", "Ann"), ("Bo Ek",)), "Ann Lee; Bo Ek")
    assert (none.gold_answers, none.gold_answer) == ((), "")
    again = evaluate(Silent(), [RIGHT, listed, absent], metric("list-recall"), out=tmp_path)
    assert [record.scores["list-recall"] for record in again.records] == [1.0, 0.5, 0.0]
    assert stored.example.needed == [["Ann Lee", "Ann"], ["Bo Ek"]]


def test_every_item_of_a_list_has_to_stand_in_what_was_found():
    seen = [Passage(id="1", title="Ann", text="A crane."), Passage(id="2", title="Bo Ek", text="A mill.")]
    gold = {"answers": ("Ann Lee", "Bo Ek"), "answer_style": "short"}
    whole = {**gold, "needed": (("Ann Lee", "Ann"), ("Bo Ek",))}
    for told, share in ((seen, 1.0), (seen[:1], 0.0)):
        prediction = dspy.Prediction(answer="Bo Ek", passages=told, seen=told)
        assert retrieval_scores(prediction, whole)["answer@5"] == share
    assert retrieval_scores(prediction, {**gold, "answers": ("Ann",)})["answer@5"] == 1.0
    assert "answer@5" not in retrieval_scores(prediction, {**gold, "answers": ()})
    assert "answer@5" not in retrieval_scores(prediction, {**gold, "answers": ("3",), "kind": "count"})


@pytest.mark.parametrize("name", ["support-f1", "sp-f1"])
def test_questions_without_the_gold_of_a_metric_are_told_before_anything_is_asked(name):
    bare = example("bare", "say right", gold_titles=[])
    with pytest.raises(QuestreeError, match=f"The question 'bare' cannot be scored: {name} needs"):
        evaluate(Silent(), [RIGHT.copy(gold_sentences=[{}]), bare], metric(name))


def test_records_are_read_by_the_name_of_their_folder_and_no_other(tmp_path):
    evaluate(Parrot(), QUESTIONS, right, out=tmp_path / "compared" / "it")
    assert len(read_records(f"{tmp_path}/compared/it")) == 3
    evaluate(Parrot(), QUESTIONS, right, out=tmp_path / "compared" / "that")
    with pytest.raises(QuestreeError, match="holds the runs it, that; give one of them"):
        read_records(tmp_path / "compared")
    with pytest.raises(QuestreeError, match="nowhere holds no run"):
        read_records(tmp_path / "nowhere")


def test_questions_may_come_one_by_one():
    assert evaluate(Parrot(), iter(QUESTIONS), right).n == 3


def test_a_stored_answer_scores_as_a_fresh_one(mini, tmp_path):
    metrics = [metric(name) for name in ("by-style", "em", "f1", "rouge-l")]
    fresh = evaluate(mini.program(), mini.dev[:6], metrics)
    evaluate(mini.program(), mini.dev[:6], length, out=tmp_path)
    refusing = dspy.LM(dspy.settings.lm.model, engine=ScriptedEngine([]), num_retries=0)  # raises if it is asked
    with dspy.context(lm=refusing):
        stored = evaluate(mini.program(), mini.dev[:6], metrics, out=tmp_path)
    assert refusing.engine.requests == []
    assert [one.scores for one in stored.records] == [one.scores for one in fresh.records]
    for record in read_records(tmp_path):
        assert metric("by-style")(record.example, record.prediction) == record.scores["by-style"]


def test_a_metric_sees_all_that_the_program_said(tmp_path):
    class Talkative(Parrot):
        def reason(self, tree, answer_style):
            passage = Passage(id="p2", title="Beside", text="not in the tree")
            tree.grow(None, query="q", answer="a", passage=Passage(id="p1", title="Gold", text="in the tree"))
            said = {"passages": [passage, *tree.passages()], "samples": ["a", "b"], "thing": object()}
            return answered(tree, "right", "told [1]", [passage], **said)

    def sees(gold, prediction, trace=None):
        seen.append(prediction)
        assert gold.kind == "bridge"
        return len(prediction.samples)

    seen: list = []
    evaluate(Talkative(), [RIGHT], sees, out=tmp_path)
    (stored,) = read_records(tmp_path)
    seen.append(stored.prediction)
    for prediction in seen:
        assert [passage.text for passage in prediction.passages] == ["not in the tree", "in the tree"]
        assert prediction.references[0].text == "not in the tree"
        assert prediction.tree.nodes[0].answer == "a"
        assert (prediction.samples, prediction.thing) == (["a", "b"], "<object>")


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_metric_that_raises_loses_no_answer(tmp_path, concurrency):
    program = Parrot()
    with pytest.raises(MetricError, match=r"'broken'.*question 'b': ZeroDivisionError: oh.*put the metric right"):
        evaluate(program, QUESTIONS, broken, out=tmp_path, policy=RunPolicy(concurrency=concurrency))
    kept = read_records(tmp_path)
    assert sorted(f"say {record.question[4:]}" for record in kept) == sorted(program.asked)
    again = Parrot()
    found = evaluate(again, QUESTIONS, right, out=tmp_path)
    assert sorted(again.asked + program.asked) == sorted(one.question for one in QUESTIONS)
    assert found.score.mean == pytest.approx(2 / 3)


def test_a_metric_that_gives_no_number_is_named():
    for value in (float("nan"), None, "much"):
        with pytest.raises(MetricError, match="question 'a'"):
            score(Record(id="a", question="q"), RIGHT, [lambda *_, value=value: value])


def test_a_program_that_answers_nonsense_is_a_failure_that_was_paid_for():
    class Nonsense(Parrot):
        def forward(self, question, **inputs):
            if question == RIGHT.question:
                return super().forward(question, **inputs)
            return dspy.Prediction(answer="right", references=["not a passage"], spent=Spent(calls=3))

    _, record = evaluate(Nonsense(), [RIGHT, WRONG], right).records
    assert (record.failure.cause, record.spent.calls) == ("error", 3)


def test_a_failed_question_needs_no_metric():
    def never(gold, prediction, trace=None):
        raise AssertionError

    assert evaluate(Parrot(), [LOST], never).records[0].scores == {"never": 0.0}


def test_metrics_run_beside_each_other_in_the_callers_context():
    both = threading.Barrier(2)
    lms = []

    def judged(gold, prediction, trace=None):
        lms.append(dspy.settings.lm)
        both.wait(20)
        return 1.0

    lm = dspy.utils.DummyLM([{}])
    with dspy.context(lm=lm):
        evaluate(Parrot(), [RIGHT, WRONG], judged, policy=RunPolicy(concurrency=2))
    assert lms == [lm, lm]


def test_ctrl_c_while_a_metric_runs_keeps_the_answer(tmp_path):
    def pressed(gold, prediction, trace=None):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"^1 more question was finished and is kept"):
        evaluate(Parrot(), QUESTIONS, pressed, out=tmp_path, policy=one_by_one())
    assert [record.id for record in read_records(tmp_path)] == ["a"]


def test_scores_belong_to_the_answer_that_they_were_given(tmp_path):
    evaluate(Parrot(), [LOST], right, out=tmp_path)
    assert read_records(tmp_path)[0].scores == {"right": 0.0}
    unscored = read_records(tmp_path)[0].model_copy(update={"scores": {}})
    with writing(tmp_path, "evaluation") as file:
        begin(file, "parrot", Parrot()).append(unscored, [])  # asked again, and killed before it was scored
    assert read_records(tmp_path)[0].scores == {}


def test_an_answer_whose_score_is_missing_is_scored_again(tmp_path):
    evaluate(Parrot(), QUESTIONS, right, out=tmp_path, policy=one_by_one())
    change(tmp_path, "DELETE FROM scores WHERE id = 'b'")
    assert evaluate(Silent(), QUESTIONS, right, out=tmp_path).score.mean == pytest.approx(2 / 3)
