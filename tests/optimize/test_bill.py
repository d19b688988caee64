"""What an optimizer pays is counted, and ends with the budget; what was made with it stays."""

import dataclasses
import shutil
import threading
from itertools import count

import dspy
import pytest
from dspy.lm15 import Usage
from fakes import FunctionEngine
from run_files import rows

from questree.evaluation.run import Interrupted
from questree.evaluation.run_file import reading
from questree.lm.limits import OutOfBudgetError, RunPolicy
from questree.lm.spent import Spent
from questree.optimize import optimizer
from questree.optimize.budget import BudgetSpentError, LMBill

AT_ONCE = 2


def compiled(mini, out=None, by="bootstrap-random-search", settings=None, max_calls=None, metric=None, told=None):
    chosen = optimizer(by, **({"candidates": 1} if settings is None else settings))
    policy = RunPolicy(max_calls=max_calls, concurrency=AT_ONCE)
    return mini.compiled(chosen, metric=metric or mini.metric, policy=policy, out=out, on_progress=told)


def paid(folder):
    """What the folder says that the optimizer has paid."""
    with reading(folder / "runs.db") as file:
        return file.paid()[None]


def test_the_bill_holds_every_call_of_the_optimizer_its_own_among_them(mini):
    bootstrapped = compiled(mini, by="bootstrap-few-shot", settings={})
    assert bootstrapped.compilation.spent.calls > bootstrapped.compilation.judged["asked"]
    proposals = compiled(mini, by="infer-rules", settings={"candidates": 1})
    assert proposals.compilation.spent.words_out > 0


def test_an_optimizer_ends_with_the_budget_and_goes_on_with_more(mini, searched, heard, tmp_path):
    _, whole = searched
    before, asked = whole.before.spent.calls, whole.compilation.spent.calls
    budget = before + asked - 10
    with pytest.raises(OutOfBudgetError, match=f"Stopped while compiling: the budget max_calls={budget} is spent"):
        compiled(mini, tmp_path, max_calls=budget)
    assert budget <= heard.calls <= budget + AT_ONCE
    assert rows(tmp_path, "SELECT * FROM candidates")
    heard.calls = 0
    with pytest.raises(OutOfBudgetError, match="Stopped while compiling"):  # the same budget, not another one
        compiled(mini, tmp_path, max_calls=budget)
    assert heard.calls == 0
    assert compiled(mini, tmp_path).program.dump_state() == whole.program.dump_state()


def test_a_kill_forgets_nothing_that_was_paid(mini, searched, heard, tmp_path):
    _, whole = searched
    calls = []

    def told(progress):
        if progress.candidate is not None and not calls:
            calls.append(heard.calls)
            shutil.copytree(tmp_path / "run", tmp_path / "killed")  # what lies there, had it been killed now

    compiled(mini, tmp_path / "run", told=told)
    spent = calls[0] - whole.before.spent.calls
    assert paid(tmp_path / "killed").calls == spent > 0
    with pytest.raises(OutOfBudgetError, match=f"max_calls={calls[0]} is spent"):
        compiled(mini, tmp_path / "killed", max_calls=calls[0])
    done = compiled(mini, tmp_path / "killed")
    assert done.compilation.paid.calls == spent + done.compilation.spent.calls
    assert compiled(mini, tmp_path / "killed").compilation.paid == done.compilation.paid


def test_an_optimizer_that_is_stopped_asks_nothing_more(mini, searched, heard, tmp_path):
    _, whole = searched
    judged, threads = count(), {*threading.enumerate()}

    def stopping(example, prediction, trace=None):
        if trace is not None and next(judged) == 1:
            raise KeyboardInterrupt  # on one of DSPy's threads; the other one is asking
        return mini.metric(example, prediction, trace)

    with pytest.raises(Interrupted, match="Stopped while compiling"):
        compiled(mini, tmp_path, metric=stopping)
    asked = heard.calls
    for left in {*threading.enumerate()} - threads:
        left.join(20)
    assert heard.calls == asked
    assert paid(tmp_path).calls == asked - whole.before.spent.calls


def test_a_second_ctrl_c_does_not_wait_for_the_calls_on_their_way(monkeypatch):
    bill = LMBill(RunPolicy())

    def pressed(done):
        raise KeyboardInterrupt

    monkeypatch.setattr(bill._changed, "wait_for", pressed)
    with pytest.raises(Interrupted) as stopped, bill.settled():
        raise KeyboardInterrupt
    assert stopped.value.at_once


@pytest.mark.parametrize("history", [{}, {"disable_history": True}, {"max_history_size": 0}])
@pytest.mark.parametrize("by", ["bootstrap-few-shot", "infer-rules"])
def test_calls_are_paid_for_whatever_the_server_and_the_history_tell(by, history, mini, heard, tmp_path):
    inner = dspy.settings.lm.engine
    silent = FunctionEngine(lambda request: dataclasses.replace(inner.complete(request), usage=Usage()))
    lm = dspy.LM("simulated/silent", engine=silent, cache=False, num_retries=0)
    with dspy.context(lm=lm, **history):
        before = compiled(mini, by="labeled-few-shot", settings={}).before.spent
        assert (before.calls > 0, before.cached) == (True, 0)
        heard.calls, budget = 0, before.calls + 8
        with pytest.raises(OutOfBudgetError, match="Stopped while compiling"):
            compiled(mini, tmp_path, by=by, settings={}, max_calls=budget)
    assert budget <= heard.calls <= budget + AT_ONCE * heard.most
    assert paid(tmp_path).calls == heard.calls - before.calls


def test_a_budget_in_dollars_needs_a_price_of_the_lm_that_writes_instructions(mini):
    bill, writer = LMBill(RunPolicy(max_cost=5)), dspy.LM("openai/known-to-nobody", api_key="none")
    bill.add(Spent(tokens_out=1))
    with bill.open(), pytest.raises(BudgetSpentError, match="no price of openai/known-to-nobody is known"):
        writer("Write an instruction.")


@pytest.mark.parametrize(
    ("by", "settings"),
    [
        ("infer-rules", {"candidates": 2}),
        ("mipro", {"auto": None, "candidates": 2, "trials": 2}),
        ("gepa", {"max_metric_calls": 40}),
    ],
)
def test_every_optimizer_ends_with_the_budget(by, settings, mini, heard):
    before = compiled(mini, by="labeled-few-shot", settings={}).before.spent.calls
    heard.calls = 0
    with pytest.raises(OutOfBudgetError, match="Stopped while compiling"):
        compiled(mini, by=by, settings=settings, max_calls=before + 25)
    assert before + 25 <= heard.calls <= before + 25 + AT_ONCE


def test_the_second_scoring_has_what_is_left(mini, heard, tmp_path):
    whole = compiled(mini)
    budget = whole.before.spent.calls + whole.compilation.spent.calls + 1
    with pytest.raises(OutOfBudgetError, match="Stopped: the budget"):
        compiled(mini, tmp_path, max_calls=budget)
    assert (tmp_path / "program" / "questree.json").exists()
