"""What a server refuses of a request by its name is left out, and an LM that keeps writing is bounded by default."""

import json

import dspy
import pytest
from dspy import lm15
from reliability.faulty_server import Schedule, at_fault

from questree import program
from questree.lm.limits import Limits, limited
from questree.lm.options import sampled

GOOD = {"answer": "Paris"}
NO_TEMPERATURE = lm15.InvalidRequestError("`temperature` is deprecated for this model.")
TOO_LONG = lm15.InvalidRequestError("maximum context length is 100 tokens; you sent {'temperature': 0.0}")


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch):
    monkeypatch.setattr("questree.lm.options._refused", set())


def direct():
    return program("direct")(question="What?")


def temperatures(engine):
    return [request.config.temperature for request in engine.requests]


@pytest.fixture
def greedy(scripted):
    """Make an LM at temperature 0 give the replies in order."""

    def put(*replies):
        engine = scripted(*replies)
        dspy.settings.lm.kwargs["temperature"] = 0.0
        return engine

    return put


def test_a_temperature_that_is_refused_is_not_sent_again_by_requests_retries_and_samples(greedy, caplog):
    engine = greedy(NO_TEMPERATURE, "I would rather not.", GOOD, GOOD, GOOD)
    first = direct()
    assert (first.answer, first.spent.calls, first.spent.failed) == ("Paris", 2, 1)
    with sampled(0.7, rollout=3):
        assert direct().answer == direct().answer == "Paris"
    assert temperatures(engine) == [0.0, None, None, None, None]
    assert caplog.text.count("scripted/test takes no temperature: it replies, and samples are drawn, at its own.") == 1


def test_what_is_refused_for_another_reason_or_without_it_fails(greedy):
    engine = greedy(TOO_LONG, GOOD, NO_TEMPERATURE, NO_TEMPERATURE)
    found = [direct() for _ in range(3)]
    assert [one.failure and one.failure.cause for one in found] == ["context-window", None, "refused"]
    assert temperatures(engine) == [0.0, 0.0, 0.0, None]


@pytest.mark.parametrize(
    ("model", "given", "limits", "bounds"),
    [
        ("openai/x", {}, {}, [4096, 4096, 8192, 16_384]),
        ("openai/x", {"max_tokens": 64}, {}, [64, 64, 128, 256]),
        ("openai/x", {}, {"window": 4096}, [1024, 1024, 2048, 2048]),  # a prompt needs room as well
        ("openai/gpt-5", {}, {}, [16_000, 16_000, 32_000, 64_000]),  # it reasons
        ("openai/gpt-4", {}, {}, [2048, 2048, 4096, 4096]),  # of a window of 8192
    ],
)
def test_a_request_names_a_largest_reply(model, given, limits, bounds):
    asked = []

    def answer(path, body):
        asked.append(json.loads(body))
        message = {"role": "assistant", "content": "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "length" if asked[1:] else "stop"}]}

    with at_fault(answer, Schedule([])) as address, limited(Limits(**limits)):
        lm = dspy.LM(model, api_base=f"{address}/v1", api_key="none", cache=False, **given)
        with dspy.context(lm=lm, adapter=None):
            assert [direct().answer, direct().failure.cause] == ["Paris", "truncated"]
    assert [body["max_completion_tokens"] for body in asked] == bounds
