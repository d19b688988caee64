"""How long, how often: waits, deadlines, and what DSPy waits for of itself."""

import threading
import time
from functools import partial
from itertools import count
from types import SimpleNamespace

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import LMRateLimitError
from dspy.utils.parallelizer import ParallelExecutor
from reliability.faulty_lm import LM_FAULTS
from reliability.faulty_retriever import RETRIEVER_FAULTS, faulty_retriever
from reliability.faulty_server import Schedule
from run_files import rows

from questree import program
from questree.evaluation.run import evaluate
from questree.lm.failure import CallFailedError
from questree.lm.limits import Limits, RunPolicy, limited, limits
from questree.lm.retries import LONGEST_WAIT, wait_before
from questree.optimize.optimizers.proposals import Proposals
from questree.optimize.optimizers.scores import Scoring
from questree.retrieval.defences import defended
from questree.retrieval.fusion import FusionRetriever
from questree.retrieval.serving.client import RemoteRetriever

FAULTS = {fault.kind: fault for fault in (*LM_FAULTS, *RETRIEVER_FAULTS)}


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (2.0, 2.0), (86_400.0, LONGEST_WAIT), (-5.0, 0.0)])
def test_a_server_s_wish_to_wait_is_heeded_up_to_a_cap(asked, waited):
    assert wait_before(1, LMRateLimitError("slow", retry_after=asked)) == waited


def test_without_one_the_wait_doubles_up_to_the_cap_and_half_of_it_is_drawn():
    error = LMRateLimitError("slow")
    for retry, most in ((1, 1), (2, 2), (3, 4), (20, LONGEST_WAIT)):
        drawn = [wait_before(retry, error) for _ in range(50)]
        assert most / 2 <= min(drawn) < max(drawn) <= most


def test_retries_are_ours_and_as_many_as_the_limits_say(behind, world):
    schedule = behind(FAULTS["500"], num_retries=1)
    program("cot")(**world.examples[0].inputs())
    assert schedule.requests == 2, "the LM's own number, and none of them inside the client"
    with limited(Limits(retries=4)):
        program("cot")(**world.examples[0].inputs())
    assert schedule.requests == 2 + 5


@pytest.mark.parametrize("kind", ["stall", "drip"])
def test_a_request_on_its_way_ends_with_the_question(kind, behind, world):
    behind(FAULTS[kind], timeout=30)
    began = time.monotonic()
    with limited(Limits(deadline=0.3)):
        prediction = program("cot")(**world.examples[0].inputs())
    assert prediction.failure.cause == "deadline"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "within",
    [lambda one: one, lambda one: FusionRetriever([one]), lambda one: defended(one, "agreement")],
    ids=["alone", "fused", "guarded"],
)
def test_a_search_on_its_way_ends_with_the_question(within, behind, world):
    behind(rate=0)
    began = time.monotonic()
    with faulty_retriever(world.retriever, Schedule([FAULTS["drip"]], 1)) as address:
        remote = RemoteRetriever(address)
        with limited(Limits(deadline=0.3)):
            prediction = program("oner", retriever=within(remote))(**world.examples[0].inputs())
    assert prediction.failure.cause == "deadline"
    assert time.monotonic() - began < 5


def test_no_call_and_no_search_is_begun_after_the_deadline(scripted, monkeypatch, world):
    now = [0.0]
    monkeypatch.setattr("questree.lm.limits.clock", lambda: now[0])
    engine = scripted({"planned_chain": [{"query": "q"}]})

    class Late(type(world.retriever)):
        def __call__(self, query, k=1):
            now[0] += 11
            return super().__call__(query, k)

    with limited(Limits(deadline=10)):
        prediction = program("searchain", retriever=Late(world.retriever.passages))(question="Which river?")
    assert prediction.failure.cause == "deadline"
    assert len(engine.requests) == 1
    assert prediction.tree.question == "Which river?"


def test_a_wait_beyond_the_deadline_is_not_begun(scripted, waits):
    scripted(lm15.RateLimitError("slow down", retry_after=30))
    with limited(Limits(deadline=20, retries=3)):
        prediction = program("cot")(question="Why?")
    assert prediction.failure.cause == "deadline"
    assert "slow down" in prediction.failure.message
    assert waits == []


def test_limits_reach_the_threads_of_dspy_and_fall_back_to_those_around():
    seen = []
    with limited(Limits(deadline=9, window=5)), limited(Limits(window=7)):
        ParallelExecutor(num_threads=2, disable_progress_bar=True).execute(lambda n: seen.append(limits()), [1, 2])
    assert seen == [Limits(deadline=9, window=7)] * 2
    assert limits() == Limits()


def test_a_run_s_policy_holds_for_its_questions_and_is_kept_with_it(scripted, tmp_path):
    scripted({"reasoning": "because", "answer": "yes", "final_content": "yes"})
    seen = []

    def looks(example, prediction, trace=None):
        seen.append(limits())
        return 1.0

    policy = RunPolicy(timeout=7, retries=1, deadline=120, window=4096, max_cost=5)
    example = dspy.Example(id="a", question="Why?", answer_style="short").with_inputs("question", "answer_style")
    evaluate(program("cot"), [example], looks, out=tmp_path, policy=policy)
    assert seen == [Limits(timeout=7, retries=1, deadline=120, window=4096)]
    assert [RunPolicy.model_validate_json(kept) for (kept,) in rows(tmp_path, "SELECT policy FROM run")] == [policy]


@pytest.mark.parametrize(("kind", "times"), [(dspy.Evaluate, 2), (Scoring, 1)])  # DSPy's own: else nothing is held back
def test_a_slow_question_is_asked_once_while_a_program_is_compiled(kind, times, monkeypatch):
    calls, begun, again = list[str](), threading.Event(), threading.Event()

    def answer(question: str) -> dspy.Prediction:
        """The first time that "slow" is asked it takes a while, unless it is asked again meanwhile."""
        calls.append(question)
        if question == "slow" and calls.count("slow") == 1:
            begun.set()
            again.wait(1.2)
        elif question == "slow":
            again.set()
        else:
            begun.wait(5)
        return dspy.Prediction(answer=question)

    hours = SimpleNamespace(time=partial(next, count(3600, 3600)))  # one passes at each look at the clock
    monkeypatch.setattr("dspy.utils.parallelizer.time", hours)
    examples = [dspy.Example(question=name).with_inputs("question") for name in ("slow", "fast")]
    scoring = kind(devset=examples, metric=lambda example, found: found.answer == "slow", num_threads=2)
    scored = scoring(answer)
    assert calls.count("slow") == times
    assert (scored.score, [result[2] for result in scored.results]) == (50.0, [True, False])


def test_what_an_optimizer_asks_itself_waits_within_bounds(behind, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("questree.lm.retries.sleep", slept.append)
    schedule = behind(FAULTS["429 for a day"], num_retries=1)
    with Proposals().asked(), pytest.raises(CallFailedError, match="rate-limit"):
        dspy.Predict("question -> answer")(question="Why?")
    assert slept == [LONGEST_WAIT]
    assert schedule.requests == 2
