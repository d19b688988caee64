"""A budget stops a run cleanly: what was asked is kept, and the same run goes on with more of it."""

import dspy
import pytest
from dspy.lm15 import Message, Response, TextPart, Usage
from fakes import FunctionEngine
from parrot import LOST, RIGHT, WRONG, NoSettings, Parrot, one_by_one, paid_before, right

from questree.common.text import dollars
from questree.evaluation.comparison.comparison import compare
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.call import call
from questree.lm.limits import OutOfBudgetError, RunPolicy
from questree.lm.spent import Spent


def test_a_budget_stops_after_the_question_that_used_it_up_and_with_more_of_it_the_same_run_goes_on(mini, tmp_path):
    def run(**budget):
        out, policy = tmp_path / "run", one_by_one(**budget)
        return evaluate(mini.program(), mini.dev[:4], mini.metric, out=out, policy=policy)

    with pytest.raises(OutOfBudgetError, match=r"max_calls=1 is spent .* 1 more question .* is kept in .*/run"):
        run(max_calls=1)
    (kept,) = read_records(tmp_path / "run")
    with pytest.raises(OutOfBudgetError, match="0 more questions"):
        run(max_calls=1)
    whole = run(max_calls=1000)
    assert (whole.n, whole.records[0].spent.calls) == (4, kept.spent.calls)
    assert run(max_calls=1).n == 4, "a run that asks nothing spends nothing"


def test_questions_on_their_way_are_kept_and_counted(mini, tmp_path):
    with pytest.raises(OutOfBudgetError) as stopped:
        evaluate(mini.program(), mini.dev[:8], mini.metric, out=tmp_path, policy=RunPolicy(concurrency=3, max_tokens=1))
    assert f"{len(read_records(tmp_path))} more questions" in str(stopped.value)
    assert 1 <= len(read_records(tmp_path)) <= 3


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"max_calls": 7}, "max_calls=7"),
        ({"max_tokens": 30}, "max_tokens=30"),
        ({"max_cost": 0.5}, r"max_cost=0.5 is spent (\$0.50)"),
        ({"max_calls": 8, "max_tokens": 31, "max_cost": 0.51}, None),
    ],
)
def test_each_bound_counts_what_was_paid_for(budget, said):
    spent = Spent(calls=9, cached=2, tokens_in=20, tokens_out=10, cost=0.5)
    over = RunPolicy(**budget).over_budget(spent)
    assert (over is None) if said is None else (said.replace("\\", "") in over)


class Billed(Parrot):
    """Each question asks an LM once, which takes ten tokens."""

    Settings = NoSettings

    def __init__(self, lm=None):
        super().__init__()
        self.ask = dspy.Predict("question -> answer")
        self.ask.lm = lm or dspy.LM("scripted/test", engine=FunctionEngine(ten_tokens), cache=False, temperature=0.7)

    def reason(self, tree, answer_style):
        call(self.ask, question=tree.question)
        return super().reason(tree, answer_style)


def ten_tokens(request):
    told = Message.assistant([TextPart("[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]")])
    usage = Usage(input_tokens=6, output_tokens=4, total_tokens=10)
    return Response(id=None, model=request.model, message=told, finish_reason="stop", usage=usage)


def test_what_a_failed_question_took_is_counted_when_it_is_asked_again(tmp_path):
    def run(*questions, **budget):
        return evaluate(Billed(), questions, right, out=tmp_path / "run", policy=one_by_one(**budget))

    assert run(RIGHT, LOST).paid.tokens_in == 12
    again = run(RIGHT, LOST)
    assert (again.spent.tokens_in, again.paid.tokens_in, again.figures()["paid_tokens_in"]) == (12, 18, 18)
    corrected = RIGHT.copy(answers=["right", "Right"])  # its answer is written again, and was not asked for again
    assert run(corrected, LOST).paid.tokens_in == 24
    (stored,) = stored_runs([tmp_path / "run"])
    assert (stored.evaluation.spent.tokens_in, stored.evaluation.paid.tokens_in) == (12, 24)
    paid = run(RIGHT).paid
    assert stored.evaluation.paid == paid
    assert (paid.calls, paid.tokens_in, paid.tokens_out) == (4, 24, 16)
    with pytest.raises(OutOfBudgetError, match=r"max_tokens=40 is spent \(40 tokens\); 0 more questions"):
        run(RIGHT, LOST, max_tokens=40)


def test_a_comparison_has_one_budget_for_what_was_paid_in_all(tmp_path):
    def run(**budget):
        programs = {"a": Billed(), "b": Billed()}
        return compare(programs, [RIGHT, LOST], right, out=tmp_path / "run", policy=one_by_one(**budget))

    assert run(max_tokens=20).stopped is not None  # the first program has spent it
    assert "max_tokens=30 is spent" in run(max_tokens=30).stopped  # its failed question was asked again
    assert run(max_tokens=1000).stopped is None


@pytest.mark.parametrize(
    ("model", "bounded"), [("openai/known-to-nobody", False), ("openai/gpt-4.1-mini", True), ("ollama/llama3.1", True)]
)
def test_a_budget_in_dollars_needs_a_price(model, bounded, tmp_path):
    policy = one_by_one(max_cost=5)
    with dspy.context(lm=dspy.LM(model, api_key="none")), paid_before(Spent(tokens_out=1)):
        if bounded:
            assert evaluate(Parrot(), [RIGHT, WRONG], right, policy=policy).n == 2
            return
        with pytest.raises(OutOfBudgetError, match=f"no price of {model} is known; give max_tokens.*run the same with"):
            evaluate(Parrot(), [RIGHT, WRONG], right, policy=policy, out=tmp_path)
        assert evaluate(Parrot(), [RIGHT, WRONG], right, policy=one_by_one(max_tokens=99), out=tmp_path).n == 2


def test_dollars_are_shown_with_what_tells_them_apart():
    assert [dollars(amount) for amount in (0.0, 0.00042, 0.0123, 0.5, 1234.567)] == [
        *("–", "$0.00042", "$0.012", "$0.50", "$1,234.57")
    ]


def test_progress_tells_what_was_spent_with_what_was_kept(mini, tmp_path):
    seen = []
    evaluate(mini.program(), mini.dev[:2], mini.metric, out=tmp_path)
    whole = evaluate(mini.program(), mini.dev[:3], mini.metric, out=tmp_path, on_progress=seen.append)
    assert [progress.done for progress in seen] == [2, 3]
    assert seen[0].spent.calls == sum(record.spent.calls for record in whole.records[:2])
    assert seen[-1].spent == whole.spent
