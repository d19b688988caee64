"""Programs over the same questions: one parent run, paired differences, and a run that is gone on with."""

from statistics import fmean

import dspy
import pytest
from parrot import LOST, RIGHT, WRONG, Parrot, one_by_one, right
from run_files import kept

from questree.common.errors import QuestreeError
from questree.evaluation.comparison.comparison import compare
from questree.evaluation.record_scores import COLUMNS, checked_metrics
from questree.evaluation.repeats import repeat
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import stored_runs
from questree.evaluation.tracking import Tracking
from questree.lm.failure import CallFailedError
from questree.lm.limits import GivenUpError, OutOfBudgetError
from questree.programs import SearChain, SearChainSettings, build
from questree.programs.baselines.memory import Direct
from questree.programs.composed import Lesson, NearestDemonstrations


def test_programs_are_compared_with_the_first_question_by_question(mini, tmp_path):
    programs = {"five": mini.program(), "one": SearChain(mini.index, settings=SearChainSettings(max_rounds=1))}
    compared = compare(programs, mini.dev[:8], [mini.metric], task="mini", out=tmp_path)
    assert compared.simulated
    scores = [[r.scores[mini.metric.name] for r in one.records] for one in compared.evaluations.values()]
    by_hand = sum(b - a for a, b in zip(*scores, strict=True)) / 8
    assert compared.difference("one").mean == pytest.approx(by_hand)
    assert [run.name for run in stored_runs([tmp_path])] == ["five", "one"]


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", 1])
def test_a_name_that_no_place_can_have_is_refused(mini, tmp_path, name):
    with pytest.raises(QuestreeError, match="cannot be the name of a program"):
        compare({name: mini.program()}, mini.dev[:1], [mini.metric], out=tmp_path / "both")
    assert not list(tmp_path.iterdir())
    with pytest.raises(QuestreeError, match="nothing to compare"):
        compare({}, mini.dev, [mini.metric])


def test_a_metric_with_the_name_of_another_column_is_refused():
    def score(example, prediction, trace=None):
        return 0.25

    checked_metrics(score, [])  # of the first metric that is the score
    for name, given in (("score", [right, score]), ("cost", score), ("score_low", score)):
        score.__name__ = name
        with pytest.raises(QuestreeError, match=f"'{name}' is the name of another column"):
            checked_metrics(given, [])
    questions = [RIGHT, WRONG, LOST, RIGHT.copy(id="d", gold_passages=["p1"])]
    found = compare({"a": Parrot(), "b": Parrot()}, questions, right)
    rows = [*found.table.lines, *found.table.details, *found.table.numbers, *found.evaluations["a"].table()]
    known = COLUMNS | {"right", "difference to a", "failed_unparsable"}
    assert {name for row in rows for name in row} <= known


def test_runs_of_a_comparison_and_repeats_have_one_parent(mini, tmp_path, tracking_store, mlflow):
    tracking = Tracking(uri=tracking_store(tmp_path))
    programs = {name: mini.program() for name in ("a", "b")}
    compare(programs, mini.dev[:2], [mini.metric], tracking=tracking, title="both")
    with dspy.context(lm=dspy.LM("some/lm", temperature=0.7)):
        repeat(Parrot(), [RIGHT, WRONG], right, 2, tracking=tracking)
    client = mlflow.MlflowClient(tracking.uri)
    runs = client.search_runs(["1"])
    told = (("both", ["a", "b"], max), ("repeat parrot", ["repeat-1", "repeat-2"], fmean))
    for title, names, score in told:
        parent = next(run for run in runs if run.info.run_name == title)
        children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert sorted(run.info.run_name for run in children) == names
        assert parent.data.metrics["score"] == score(run.data.metrics["score"] for run in children)
    both = next(run.info.run_id for run in runs if run.info.run_name == "both")
    assert {"page.html", "table.md", "table.csv"} <= {artifact.path for artifact in client.list_artifacts(both)}


def test_a_budget_is_for_all_programs_and_what_was_evaluated_is_compared(mini, tmp_path):
    programs = {name: mini.program() for name in ("a", "b")}
    alone = compare({"a": programs["a"]}, mini.dev[:3], [mini.metric]).evaluations["a"].spent.calls
    policy = one_by_one(max_calls=alone + 1)
    compared = compare(programs, mini.dev[:3], [mini.metric], task="hotpotqa", out=tmp_path, policy=policy)
    assert list(compared.evaluations) == ["a"]
    assert "1 more question was finished" in compared.stopped
    assert str(tmp_path / "b") in compared.stopped
    assert "max_calls" in (tmp_path / "page.html").read_text()
    # of a program that was not evaluated, the papers' figures have nothing to stand beside
    assert {line["program"] for line in compared.papers} == {"a"}
    with pytest.raises(OutOfBudgetError):
        compare(programs, mini.dev[:3], [mini.metric], policy=one_by_one(max_calls=1))


class Failing(Parrot):
    """Goes wrong at each question."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def reason(self, tree, answer_style):
        raise self.error


BROKEN = Failing(ZeroDivisionError("oh"))
UNHEARD = Failing(CallFailedError("unreachable", "nobody there"))


def test_a_program_that_fails_by_itself_is_left_out_of_the_table_of_the_others(tmp_path):
    programs = {"broken": BROKEN, "good": Parrot(), "more": Parrot()}
    compared = compare(programs, [RIGHT, WRONG], right, out=tmp_path)
    assert list(compared.evaluations) == ["good", "more"]
    assert compared.stopped.startswith("broken: The first 2 questions all failed, and the others would too: 2 error")
    assert "ZeroDivisionError: oh" in (tmp_path / "table.md").read_text()
    with pytest.raises(GivenUpError, match=r"^one: The [^:]*:[^:]*: oh[^:]* two: [^:]*:[^:]*: oh[^:]* three: "):
        compare(dict.fromkeys(("one", "two", "three"), BROKEN), [RIGHT, WRONG], right)


def test_where_the_lm_answers_nobody_the_other_programs_are_not_asked():
    programs = {"good": Parrot(), "unheard": UNHEARD, "left": Parrot()}
    compared = compare(programs, [RIGHT, WRONG], right)
    assert (list(compared.evaluations), programs["left"].asked) == (["good"], [])
    assert "unheard: The first 2 questions all failed" in compared.stopped
    with pytest.raises(GivenUpError, match="2 unreachable"):
        compare({"unheard": UNHEARD, "left": programs["left"]}, [RIGHT, WRONG], right)
    assert programs["left"].asked == []


def test_a_second_comparison_asks_nothing(mini, tmp_path):
    programs = {"a": mini.program()}
    first = compare(programs, mini.dev[:3], [mini.metric], out=tmp_path)
    there = kept(tmp_path)
    second = compare(programs, mini.dev[:3], [mini.metric], out=str(tmp_path))
    assert kept(tmp_path) == there
    assert second.evaluations == first.evaluations


def test_no_program_is_asked_if_the_folder_of_a_later_one_holds_another_run(mini, tmp_path):
    one = SearChain(mini.index, settings=SearChainSettings(max_rounds=1))
    compare({"b": one}, mini.dev[:1], mini.metric, out=tmp_path)
    with pytest.raises(
        QuestreeError, match=r"/b holds another run: settings\.max_rounds was 1 and is now 5\. .*name an"
    ):
        compare({"a": mini.program(), "b": mini.program()}, mini.dev[:1], mini.metric, out=tmp_path)
    assert [run.name for run in stored_runs([tmp_path])] == ["b"]


@pytest.mark.parametrize(
    ("programs", "stands"),
    [
        ({"five": {}, "one": {"max_rounds": 1}}, "five"),  # with the settings that it has by itself
        ({"best": {}, "paper": {"preset": "paper"}}, "paper"),
    ],
)
def test_one_program_of_a_kind_stands_for_the_papers_method(programs, stands, mini):
    made = {name: build("searchain", settings, retriever=mini.index) for name, settings in programs.items()}
    compared = compare(made, mini.dev[:1], mini.metric, task="musique")
    assert (compared.methods, compared.retriever) == ({stands: "searchain"}, "words")
    assert {line["program"] for line in compared.papers} == {stands}


def test_programs_with_demonstrations_by_question_are_compared(mini):
    nearest = NearestDemonstrations(mini.program(), [Lesson(inputs={"question": "?"}, demonstrations={})], 1)
    assert compare({"nearest": nearest}, mini.dev[:1], mini.metric).methods == {"nearest": "searchain"}


@pytest.fixture
def taught(mini):
    """A program that is shown the first dev question with its answer."""
    program = Direct()
    [predictor] = program.predictors()
    predictor.demos = [dspy.Example(question=mini.dev[0].question.upper(), answer=mini.dev[0].answers[0])]
    return program


def test_a_program_is_not_evaluated_on_its_demonstrations(mini, taught):
    with pytest.raises(QuestreeError, match="1 questions are for training and for scoring"):
        evaluate(taught, mini.dev[:2], mini.metric)
    assert evaluate(taught, mini.dev[1:2], mini.metric).n == 1
    lesson = Lesson(inputs={"question": mini.dev[1].question}, demonstrations={})
    with pytest.raises(QuestreeError, match="1 questions are for training and for scoring"):
        evaluate(NearestDemonstrations(Direct(), [lesson], 1), mini.dev[1:2], mini.metric)


def test_no_program_is_asked_if_a_later_one_is_shown_a_question(mini, taught):
    programs = {"untaught": Parrot(), "taught": taught}
    with pytest.raises(QuestreeError, match="choose different splits"):
        compare(programs, mini.dev[:2], mini.metric)
    assert programs["untaught"].asked == []
