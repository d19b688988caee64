"""What is paid is what is told: against a server that counts, over usage in every form, kills and stops."""

from __future__ import annotations

import os
import signal

import dspy
import pytest
from parrot import RIGHT, WRONG, Parrot, example, right
from reliability.money import PAYING, money_report, paying
from reliability.till import till

from questree import program
from questree.common.errors import QuestreeError
from questree.data import load_task
from questree.evaluation.kept_run import KeptRun
from questree.evaluation.pools import at_most
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records
from questree.lm.policy import OutOfBudgetError, RunPolicy
from questree.simulate import Mind, Traits, World


@pytest.fixture
def counter():
    """A server that counts, and the LM of this test at it: one that has a price."""
    questions = [question for split in load_task("mini").questions.values() for question in split]
    with till(Mind(World(questions), Traits(malformed=0))) as found:
        lm = dspy.LM("openai/simulated", api_base=found.address, api_key="none", cache=False)
        with dspy.context(lm=lm, adapter=None):
            yield found


def asked(count=6, out=None, **policy):
    examples = load_task("mini").examples("dev")[:count]
    return evaluate(program("cot"), examples, right, out=out, policy=RunPolicy(concurrency=1, **policy))


@pytest.mark.parametrize("usage", ["null", "total only"])
@pytest.mark.parametrize("budget", [{"max_tokens": 300}, {"max_cost": 1e-6}])
def test_a_budget_bounds_where_the_server_does_not_count_tokens(usage, budget, counter, monkeypatch):
    counter.usage = usage
    monkeypatch.setattr("questree.lm.spent._prices", lambda model: (1e-6, 1e-6))
    with pytest.raises(OutOfBudgetError, match="is spent"):
        asked(**budget)
    assert 1 <= counter.requests <= 3


def test_estimated_tokens_say_so(counter):
    told = asked().paid
    counter.usage = "null"
    guessed = asked().paid
    assert (told.estimated, guessed.estimated) == (0, guessed.calls)
    assert told.tokens_in / 3 < guessed.tokens_in < told.tokens_in * 3


def test_a_reply_with_two_choices_is_paid_once_and_used(counter):
    counter.choices = 2
    found = asked()
    assert (found.failures, found.paid.calls, found.paid.failed) == ({}, counter.requests, 0)
    assert counter.requests == 6


def test_several_samples_of_one_call_are_several_requests(counter):
    paid = asked().paid
    began = counter.requests
    sampled = dspy.Predict("question -> answer", n=3, temperature=1.0)

    def sampling(gold, prediction, trace=None):
        return len(sampled(question="Which?").completions) / 3

    found = evaluate(Parrot(), [RIGHT, WRONG], sampling)
    assert paid.calls == 6
    assert counter.requests - began == found.paid.calls == 6, "a metric's own calls count"


def test_answers_that_cannot_be_written_now_are_kept_when_others_have_ended(counter, tmp_path, monkeypatch):
    questions, append = [example(str(number), f"say {number}") for number in range(8)], KeptRun.append
    faults = [QuestreeError("Too many open files")] * 3

    def failing(run, *given):
        if faults:
            raise faults.pop()
        append(run, *given)

    monkeypatch.setattr(KeptRun, "append", failing)
    with pytest.raises(QuestreeError, match="Too many open files"):
        evaluate(Parrot(), questions, right, out=tmp_path, policy=RunPolicy(concurrency=8))
    assert len(read_records(tmp_path)) == 8


def test_questions_at_a_time_are_bounded_by_the_files_that_may_be_open(monkeypatch, caplog):
    monkeypatch.setattr("resource.getrlimit", lambda what: (len(os.listdir("/dev/fd")) + 52, 4096))
    assert at_most(4) == 4
    assert at_most(64) == 10
    assert "10 questions at a time, not 64" in caplog.text


@pytest.mark.parametrize("kind", ["evaluate", "bootstrap-random-search"])
def test_what_a_killed_and_stopped_command_paid_is_told(kind, tmp_path):
    found = money_report(kind, 1, 2, 3, tmp_path)
    assert (found.kills, found.stops, found.differing) == (1, 2, [])


def test_sigterm_stops_as_ctrl_c_does(tmp_path):
    with paying(tmp_path) as (counter, run):
        words = [*PAYING["evaluate"], "--api-base", counter.address]
        codes = [run(words, tmp_path / str(int(number)), (3, (number,))) for number in (signal.SIGINT, signal.SIGTERM)]
        said = [(tmp_path / str(int(number)) / "said.txt").read_text() for number in (signal.SIGINT, signal.SIGTERM)]
    assert codes[0] == codes[1] > 0
    assert all("stopped: Stopped; " in one and "run the same again to go on" in one for one in said)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAYING)
def test_what_any_command_paid_is_told(kind, tmp_path):
    assert money_report(kind, 5, 5, 0, tmp_path).differing == []
