"""What an optimizer pays is counted, and ends with the budget; what was made with it stays."""

from __future__ import annotations

import os

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from questree.common.errors import QuestreeError
from questree.lm.ledger import Spent
from questree.lm.policy import OutOfBudgetError, RunPolicy
from questree.optimize import compile as compile_program
from questree.optimize import optimizer
from questree.optimize.budget import LMBill

AT_ONCE = 2


class Answered(BaseCallback):
    """Counts the LM's replies."""

    calls = 0

    def on_lm_end(self, call_id, outputs, exception=None):
        self.calls += 1


@pytest.fixture
def answered():
    """The replies of the LM of this test."""
    counter = Answered()
    with dspy.context(callbacks=[counter]):
        yield counter


def compiled(mini, out=None, by="bootstrap-random-search", settings=None, max_calls=None):
    chosen = optimizer(by, **({"candidates": 1} if settings is None else settings))
    policy = RunPolicy(max_calls=max_calls, concurrency=AT_ONCE)
    return compile_program(mini.program(), mini.examples(), mini.metric, optimizer=chosen, policy=policy, out=out)


def test_the_bill_holds_every_call_of_the_optimizer_its_own_among_them(mini):
    bootstrapped = compiled(mini, by="bootstrap-few-shot", settings={})
    assert bootstrapped.compilation.spent.calls > bootstrapped.compilation.judged["asked"]
    proposals = compiled(mini, by="copro", settings={"breadth": 2, "depth": 1})
    assert proposals.compilation.spent.words_out > 0


def test_an_optimizer_ends_with_the_budget_and_goes_on_with_more(mini, searched, answered, tmp_path):
    _, whole = searched
    before, asked = whole.before.spent.calls, whole.compilation.spent.calls
    budget = before + asked - 10
    with pytest.raises(OutOfBudgetError, match=f"Stopped while compiling: the budget max_calls={budget} is spent"):
        compiled(mini, tmp_path, max_calls=budget)
    assert budget <= answered.calls <= budget + AT_ONCE
    assert len(list((tmp_path / "candidates").glob("*.json"))) > 0
    answered.calls = 0
    with pytest.raises(OutOfBudgetError, match="Stopped while compiling"):  # the same budget, not another one
        compiled(mini, tmp_path, max_calls=budget)
    assert answered.calls == 0
    assert compiled(mini, tmp_path).program.dump_state() == whole.program.dump_state()
    assert not (tmp_path / "paid.json").exists()


DAMAGED = [
    *("", "{", "[]", "1", "{}x", "\ufeff{}", "[" * 9999, '{"calls": 1, "calls": 0}', '{"more": NaN}'),
    *(f'{{"calls": {value}}}' for value in ('"1"', "-5", "null", "true", "1.5", "1e999", "9" * 40, "[]")),
]


def test_a_damaged_bill_is_refused_by_name(tmp_path):
    file = tmp_path / "paid.json"
    for content in DAMAGED:
        file.write_text(content)
        with pytest.raises(QuestreeError, match=r"paid\.json.*is damaged .*delete it to count anew"):
            LMBill(RunPolicy(), Spent(), file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(QuestreeError, match=r"paid\.json.*no regular file"):
        LMBill(RunPolicy(), Spent(), file)


@pytest.mark.parametrize(
    ("by", "settings"),
    [
        ("copro", {"breadth": 2, "depth": 1}),
        ("mipro", {"auto": None, "candidates": 2, "trials": 2}),
        ("gepa", {"max_metric_calls": 40}),
        ("simba", {"steps": 1, "candidates": 2, "batch_size": 4}),
    ],
)
def test_every_optimizer_ends_with_the_budget(by, settings, mini, answered):
    before = compiled(mini, by="labeled-few-shot", settings={}).before.spent.calls
    answered.calls = 0
    with pytest.raises(OutOfBudgetError, match="Stopped while compiling"):
        compiled(mini, by=by, settings=settings, max_calls=before + 25)
    assert before + 25 <= answered.calls <= before + 25 + AT_ONCE


def test_the_second_scoring_has_what_is_left(mini, answered, tmp_path):
    whole = compiled(mini)
    budget = whole.before.spent.calls + whole.compilation.spent.calls + 1
    with pytest.raises(OutOfBudgetError, match="Stopped: the budget"):
        compiled(mini, tmp_path, max_calls=budget)
    assert (tmp_path / "program" / "program.json").exists()
