"""A server that answers in other dress than OpenAI's: no question is lost, also in a stream, and all is counted."""

import json
from math import nan

import dspy
import pytest
from reliability.faulty_server import Schedule, at_fault
from reliability.server_dresses import DRESSES, WAYS, Server, answered, server_dress_report

from questree import program
from questree.evaluation import evaluate
from questree.evaluation.capsule import pack, replay
from questree.lm.failure import counting_failures
from questree.lm.limits import Limits, RunPolicy, limited
from questree.lm.spent import counted
from questree.metrics import metric

TEXT = (
    "[[ ## reasoning ## ]]\nso\n\n[[ ## final_content ## ]]\nHo!\n\n[[ ## answer ## ]]\nLiffey\n\n[[ ## completed ## ]]"
)
ASKED = {"question": "Which river?"}


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.kind)
def test_a_server_in_other_dress_loses_no_question(dress):
    counts = server_dress_report([dress], questions=1)
    assert counts.wrong == []
    assert (counts.found["questions"], counts.found["lost"]) == (3, 0)


def asked(*bodies, way: str):
    """Ask a server that sends this for each request, the last of it again and again; return the prediction and n."""
    sent = []

    def answer(path, body):
        sent.append(body)
        return 200, bodies[min(len(sent), len(bodies)) - 1]

    with at_fault(answer, Schedule([])) as address, limited(Limits(retries=1)), counting_failures():
        lm = dspy.LM("openai/x", api_base=f"{address}/v1", api_key="none", cache=False)
        with dspy.context(lm=lm, adapter=None):
            return answered(program("cot"), ASKED, way), len(sent)


def event(**said) -> bytes:
    return b"data: %s\n\n" % json.dumps(said).encode()


@pytest.mark.parametrize(
    ("body", "cause", "requests"),
    [
        (event(error={"code": 429, "message": "slow down"}), "rate-limit", 2),
        (event(error={"code": "402", "message": "slow down"}), "auth", 1),
        (
            event(choices=[{"delta": {"content": TEXT}}]) + event(error={"code": 503, "message": "slow down"}),
            "server",
            2,
        ),
        (event(object="error", message="slow down", code=40101), "auth", 1),
        (b"data: [DONE]\n\n", "server", 2),
        (event(choices=[], usage={"prompt_tokens": 9}) + b"data: [DONE]\n\n", "server", 2),
    ],
)
def test_an_error_in_a_stream_has_the_cause_of_its_status_and_is_not_paid(body, cause, requests, monkeypatch):
    monkeypatch.setattr("questree.lm.retries.FIRST_WAIT", 0)
    prediction, sent = asked(body, way="stream")
    assert (prediction.failure.cause, sent) == (cause, requests)
    assert ("slow down" in prediction.failure.message) == (b"slow down" in body)
    assert (prediction.spent.calls, prediction.spent.failed) == (0, requests)


@pytest.mark.parametrize(
    "said", [{"object": "error", "message": "no room"}, {"error": "no room"}, {"detail": "no room"}]
)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_with_status_200_keeps_its_message(said, way, monkeypatch):
    monkeypatch.setattr("questree.lm.retries.FIRST_WAIT", 0)
    prediction, sent = asked(said, way=way)
    assert (prediction.failure.cause, sent) == ("server", 2)
    assert prediction.failure.message.endswith("no room")


@pytest.mark.parametrize("content", [TEXT, [{"type": "text", "text": TEXT}]])
def test_a_whole_answer_of_any_length_is_read_as_a_stream(content):
    message = {"role": "assistant", "content": content, "reasoning_content": "hm " * 100_000}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    prediction, sent = asked({"choices": [choice], "usage": {"completion_tokens": "7"}}, way="stream")
    assert (prediction.answer, prediction.final_content, sent) == ("Liffey", "Ho!", 1)
    assert prediction.spent.tokens_out == 7


def test_a_reply_that_broke_off_says_in_the_server_s_word_why():
    choice = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "time_limit"}
    prediction, sent = asked({"choices": [choice]}, way="thread")
    assert (prediction.failure.cause, sent) == ("unparsable", 3)
    assert prediction.failure.message.endswith("(time_limit)")


@pytest.mark.parametrize(
    ("told", "count"),
    [
        (7, 7),
        (7.0, 7),
        ("7", 7),
        (6.25, 7),
        (0, 0),
        (10**400, 10**9),
        *((odd, None) for odd in (-1, nan, "n/a", True, [])),
    ],
)
def test_what_is_a_count_is_counted(told, count):
    assert counted(told) == count


REPLAYED = {
    "no temperature, OpenAI",
    "broken off, abort",
    "cut, LENGTH",
    "no bound of the reply, SGLang",
    "choices None",
}


@pytest.mark.parametrize("dress", [one for one in DRESSES if one.kind in REPLAYED], ids=lambda dress: dress.kind)
def test_what_such_a_server_answered_is_replayed(dress, world, waits, tmp_path):
    with at_fault(Server(dress, world.engine).answer, Schedule([])) as address:
        lm = dspy.LM("openai/simulated", api_base=f"{address}/v1", api_key="none", cache=False, temperature=0.0)
        with dspy.context(lm=lm, adapter=None):
            policy = RunPolicy(concurrency=1)
            evaluate(program("cot"), world.examples[:2], [metric("cover-em")], out=tmp_path / "run", policy=policy)
    pack([tmp_path / "run"], tmp_path / "run.capsule")
    [run] = replay(tmp_path / "run.capsule")
    assert len(run.questions) == 2
    assert run.differing == []
