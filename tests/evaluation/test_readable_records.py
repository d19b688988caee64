"""Whatever a retriever, a metric, a server or a program gives, each line of a run can be read back."""

from math import inf, isfinite, nan

import dspy
import pytest
from fakes import ListRetriever
from parrot import RIGHT, WRONG, Parrot, example, right

from questree.common.errors import QuestreeError
from questree.evaluation.record_scores import MetricError
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records
from questree.lm.spent import Meter, Spent
from questree.retrieval import Passage


class Broken(ListRetriever):
    """Gives the same for every query."""

    def __init__(self, gives):
        super().__init__({})
        self.gives = gives

    def __call__(self, query, k=1):
        return self.gives


class Searching(Parrot):
    """Searches for the question that says so."""

    def __init__(self, gives):
        super().__init__()
        self.retriever = Broken(gives)

    def reason(self, tree, answer_style):
        if tree.question == "search":
            self.retrieve(tree.question, 1)
        return super().reason(tree, answer_style)


SEARCH = example("s", "search")


def scored(score):
    return [Passage(id="p", text="t").model_copy(update={"score": score})]


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_a_retriever_whose_scores_are_none_fails_the_question(score, tmp_path):
    for others in ([RIGHT], [RIGHT, WRONG]):  # the second one goes on with the first
        found = evaluate(Searching(scored(score)), [*others, SEARCH], right, out=tmp_path)
        assert found.failures == {"retrieval": 1}
        message = f"ValueError: the retriever gave passage 'p' the score {score}"
        assert found.records[-1].failure.message == message
        assert len(read_records(tmp_path)) == found.n


@pytest.mark.parametrize("gives", [None, "text", [None], ["text"], [{"id": "p", "text": "t"}]])
def test_a_retriever_that_gives_no_passages_fails_the_question(gives):
    assert evaluate(Searching(gives), [RIGHT, SEARCH], right).failures == {"retrieval": 1}


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_metric_without_a_finite_number_leaves_a_run_that_goes_on(value, tmp_path):
    def broken(gold, prediction, trace=None):
        return value

    with pytest.raises(MetricError, match=f"it gave {value}"):
        evaluate(Parrot(), [RIGHT, WRONG], broken, out=tmp_path)
    assert evaluate(Parrot(), [RIGHT, WRONG], right, out=tmp_path).score.mean == 0.5


class Odd(Parrot):
    """Gives a prediction with something odd in it."""

    def __init__(self, **odd):
        super().__init__()
        self.odd = odd

    def forward(self, question, **inputs):
        prediction = super().forward(question, **inputs)
        if question == RIGHT.question:
            prediction = dspy.Prediction(**{**prediction, **self.odd})
        return prediction


def test_a_number_that_is_none_is_kept_as_a_word_beside_the_answer(tmp_path):
    evaluate(Odd(votes=[nan, {"much": inf}]), [RIGHT], right, out=tmp_path)
    assert read_records(tmp_path)[0].extras["votes"] == ["nan", {"much": "inf"}]


@pytest.mark.parametrize(
    "odd", [{"seconds": nan}, {"references": scored(nan)}, {"votes": 10**4400}, {"final_content": "\ud800"}]
)  # fmt: skip
def test_what_could_not_be_read_back_is_a_failure(odd, tmp_path):
    found = evaluate(Odd(**odd), [RIGHT, WRONG], right, out=tmp_path)
    assert found.failures == {"error": 1}
    assert {record.failure and record.failure.cause for record in read_records(tmp_path)} == {None, "error"}


def test_an_error_of_any_words_can_be_kept(tmp_path):
    class Raises(Parrot):
        def reason(self, tree, answer_style):
            if tree.question == WRONG.question:
                raise ValueError("half a pair: \ud800")
            return super().reason(tree, answer_style)

    (_, record) = evaluate(Raises(), [RIGHT, WRONG], right, out=tmp_path).records
    assert record.failure.message == "ValueError: half a pair: ?"
    assert len(read_records(tmp_path)) == 2


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        (example("a", None), "question: Input should be a valid string"),
        (example("a", "half \ud800"), "surrogates"),
        (example("a", "q", answers=["x", 3]), "answers.1: Input should be a valid string"),
        (RIGHT.copy(answers="right"), "answers is one text"),
        (dspy.Example(id="a", answers=["x"]).with_inputs("id"), "no attribute 'question'"),
        (dspy.Example(id="a", question="q", answers=["x"]), "Inputs have not been set"),
    ],
)
def test_a_question_that_no_record_can_hold_is_refused_before_anything_is_asked(asked, fault, tmp_path):
    parrot = Parrot()
    with pytest.raises(QuestreeError, match=f"The question 'a' cannot be asked: .*{fault}"):
        evaluate(parrot, [RIGHT.copy(id="b"), asked], right, out=tmp_path)
    assert parrot.asked == []


def test_a_server_that_claims_too_many_tokens_is_counted_within_what_a_sum_can_hold():
    spent = Meter(dspy.settings.lm, []).end([{"usage": {"prompt_tokens": 10**400, "completion_tokens": 2}}])
    assert isfinite(spent.tokens_in / 3 + spent.tokens_out)
    assert Spent.model_validate_json(spent.model_dump_json()) == spent
