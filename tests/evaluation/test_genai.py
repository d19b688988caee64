import dspy
import pytest
from mini_task import every_question

import questree
from questree.common.errors import QuestreeError
from questree.evaluation.genai import expectations_of
from questree.evaluation.records import plain
from questree.metrics import metric
from questree.programs import SearChain
from questree.simulate import Traits, simulated_lm


@pytest.fixture
def store(tmp_path, tracking_store, mlflow):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(tracking_store(tmp_path))
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture
def index(_index):
    return _index


@pytest.fixture
def configured(_task):
    """The simulated LM, configured for every thread as a user would: MLflow asks on threads of its own."""
    dspy.configure(lm=simulated_lm(every_question(_task), Traits(malformed=0)))
    yield
    dspy.configure(lm=None)


def test_mlflow_evaluates_a_program_on_a_task_with_our_metrics_and_one_of_the_user_s(index, store, configured, mlflow):
    from mlflow.genai.scorers import scorer

    program = SearChain(index)

    @scorer
    def answered(outputs) -> bool:
        return outputs.failure is None

    names = ("by-style", "f1", "support-f1")
    data = questree.mlflow_dataset("mini", "test", name="few").to_df().head(2)
    scorers = [answered, *map(questree.mlflow_scorer, names)]
    found = mlflow.genai.evaluate(data=data, predict_fn=program, scorers=scorers)
    examples = {one.question: one for one in questree.load_task("mini").examples("test")}
    asked = [examples[row["question"]] for row in data["inputs"]]
    for name in names:
        scores = [metric(name)(example, program(**example.inputs())) for example in asked]
        assert found.metrics[f"{name}/mean"] == pytest.approx(sum(scores) / len(scores))
    assert found.metrics["answered/mean"] == 1.0


def test_a_task_is_one_data_set_however_often_it_is_asked_for(store):
    task = questree.load_task("mini")
    first, second = questree.mlflow_dataset(task, "test"), questree.mlflow_dataset("mini", "test")
    assert first.dataset_id == second.dataset_id
    rows = second.to_df()
    assert len(rows) == len(task.split("test"))
    row = rows.iloc[0]
    [example] = [one for one in task.examples("test") if one.question == row["inputs"]["question"]]
    assert row["inputs"] == {"question": example.question, "answer_style": example.answer_style}
    assert row["expectations"] == expectations_of(example)
    assert row["expectations"]["expected_response"] == example.answer
    assert row["expectations"]["gold_titles"] == example.gold_titles


def test_a_store_without_data_sets_is_named(tmp_path, store, mlflow):
    mlflow.set_tracking_uri(tmp_path.as_uri())
    with pytest.raises(QuestreeError, match="takes no evaluation data set 'mini-dev'"):
        questree.mlflow_dataset("mini")


@pytest.mark.parametrize("name", ["by-style", "support-f1", "answer-recall"])
def test_a_scorer_reads_predictions_their_json_and_a_served_row_alike(name, mini):
    example = mini.dev[0]
    prediction = mini.program()(**example.inputs())
    score, expected = questree.mlflow_scorer(name), expectations_of(example)
    inputs, as_json = dict(example.inputs()), plain(dict(prediction))
    worth = {score(inputs=inputs, outputs=one, expectations=expected) for one in (prediction, as_json, [as_json])}
    assert worth == {float(metric(name)(example, prediction))}


def test_a_scorer_scores_supporting_sentences():
    told = [{"title": "Mill", "text": "It grinds. Osmund built it.", "sentences": ["It grinds.", "Osmund built it."]}]
    example = dspy.Example(question="q", answers=["Osmund"], gold_sentences=[{**told[0], "supporting": [1]}])
    mill = {"id": "1", "title": "Mill", "text": told[0]["text"]}
    outputs = {"answer": "Osmund", "final_content": "Osmund built the mill [1].", "references": [mill]}
    score = questree.mlflow_scorer("sp-f1")
    assert score(inputs={"question": "q"}, outputs=outputs, expectations=expectations_of(example)) == 1.0


@pytest.mark.parametrize("given", [None, 3, dict])
def test_a_scorer_is_made_of_a_metric_only(given):
    with pytest.raises(QuestreeError, match="is no metric: give a function"):
        questree.mlflow_scorer(given)


def test_a_scorer_takes_an_answer_alone_and_the_expectation_of_mlflow_s_judges():
    score = questree.mlflow_scorer("em")
    assert score(inputs={"question": "q"}, outputs="The Liffey", expectations={"expected_response": "Liffey"}) == 1.0
    assert score(inputs={"question": "q"}, outputs="Liffey", expectations={"answers": "Liffey"}) == 1.0
    failed = {"answer": "Liffey", "failure": {"cause": "deadline"}}
    assert score(inputs={"question": "q"}, outputs=failed, expectations={"answers": ["Liffey"]}) == 0.0
    with pytest.raises(QuestreeError, match="The scorer 'em' needs gold answers"):
        score(inputs={"question": "q"}, outputs="Liffey", expectations={})
    with pytest.raises(QuestreeError, match="The scorer 'em' needs gold answers"):
        score(inputs={"question": "q"}, outputs="Liffey")
    with pytest.raises(QuestreeError, match="Outputs of the type int cannot be scored"):
        score(inputs={"question": "q"}, outputs=3, expectations={"answers": ["Liffey"]})
    with pytest.raises(QuestreeError, match="no metric 'emm'"):
        questree.mlflow_scorer("emm")


def test_gold_answers_that_are_patterns_are_no_expected_response():
    example = dspy.Example(answers=["Lif+ey"], answers_are_regex=True, gold_passages=["1"], gold_titles=[])
    assert expectations_of(example) == {"answers": ["Lif+ey"], "answers_are_regex": True, "gold_passages": ["1"]}
    assert expectations_of(dspy.Example(answers=[])) == {"answers": []}


def test_a_list_and_an_absent_answer_are_scored_as_what_they_are():
    listed = dspy.Example(answers=["Ann Lee", "Bo Ek"], needed=[["Ann Lee", "Ann"], ["Bo Ek"]])
    expected = expectations_of(listed)
    assert expected == {"answers": ["Ann Lee", "Bo Ek"], "needed": [["Ann Lee", "Ann"], ["Bo Ek"]]}
    score = questree.mlflow_scorer("complete")
    scores = [score(inputs={"question": "q"}, outputs=one, expectations=expected) for one in ("Bo Ek, Ann", "Ann")]
    assert scores == [1.0, 0.0]
    none = [score(inputs={"question": "q"}, outputs=one, expectations={"answers": []}) for one in ("", "Ann")]
    assert none == [1.0, 0.0]
