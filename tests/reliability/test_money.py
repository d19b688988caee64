"""What is paid is what is told, whatever a server says of usage; and what happens where files cannot be opened."""

import os

import dspy
import pytest
from parrot import RIGHT, WRONG, Parrot, example, right
from reliability.faulty_lm import NO_USAGE, TOTAL_ONLY
from reliability.faulty_server import Fault

from questree import program
from questree.common.errors import QuestreeError
from questree.data import load_task
from questree.evaluation.kept_run import KeptRun
from questree.evaluation.pools import at_most
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records
from questree.lm.limits import OutOfBudgetError, RunPolicy


def asked(count=6, out=None, **policy):
    examples = load_task("mini").examples("dev")[:count]
    return evaluate(program("cot"), examples, right, out=out, policy=RunPolicy(concurrency=1, **policy))


ODD_COUNTS = {"prompt_tokens": -5, "completion_tokens": "many", "prompt_tokens_details": []}
ODD = Fault("odd counts", change=lambda reply: {**reply, "usage": ODD_COUNTS})


@pytest.mark.parametrize("usage", [NO_USAGE, TOTAL_ONLY, ODD], ids=lambda fault: fault.kind)
@pytest.mark.parametrize("budget", [{"max_tokens": 300}, {"max_cost": 1e-6}])
def test_a_budget_bounds_where_the_server_does_not_count_tokens(usage, budget, behind, monkeypatch):
    schedule = behind(usage)
    monkeypatch.setattr("questree.lm.spent._prices", lambda model: (1e-6, 1e-6))
    with pytest.raises(OutOfBudgetError, match="is spent"):
        asked(**budget)
    assert 1 <= schedule.requests <= 3


def test_estimated_tokens_say_so(behind):
    behind(rate=0)
    told = asked().paid
    behind(NO_USAGE)
    guessed = asked().paid
    assert (told.estimated, guessed.estimated) == (0, guessed.calls)
    assert told.tokens_in / 3 < guessed.tokens_in < told.tokens_in * 3


def test_a_reply_with_two_choices_is_paid_once_and_used(behind):
    def twice(reply):
        return {**reply, "choices": [{**reply["choices"][0], "index": number} for number in range(2)]}

    schedule = behind(Fault("two choices", change=twice))
    found = asked()
    assert (found.failures, found.paid.calls, found.paid.failed) == ({}, schedule.requests, 0)
    assert schedule.requests == 6


def test_several_samples_of_one_call_are_several_requests(behind):
    schedule = behind(rate=0)
    sampled = dspy.Predict("question -> answer", n=3, temperature=1.0)

    def sampling(gold, prediction, trace=None):
        return len(sampled(question="Which?").completions) / 3

    found = evaluate(Parrot(), [RIGHT, WRONG], sampling)
    assert schedule.requests == found.paid.calls == 6, "a metric's own calls count"


def test_answers_that_cannot_be_written_now_are_kept_when_others_have_ended(tmp_path, monkeypatch):
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
