"""The simulated LM over HTTP: the same replies as in process, and clear refusals."""

import json
from collections.abc import Iterator
from typing import Any

import dspy
import httpx
import pytest
from tiny_world import QUESTIONS, RIVER, TitleRetriever, request

from questree.programs import SearChain
from questree.retrieval.serving.server_limits import ServerLimits
from questree.signatures.chain_of_query import PlanChain
from questree.simulate import Mind, SimulatedEngine, Traits, World, lm_of
from questree.simulate.server import running_lm

MIND = Mind(World(QUESTIONS), Traits(knows=0.5, plans=0.6))
SAID = {"model": "simulated", "messages": [{"role": "user", "content": "Propose an instruction, please."}]}
_HALF_A_CHARACTER = rb'{"model": "simulated", "messages": [{"role": "user", "content": "\ud800"}]}'


@pytest.fixture(scope="module")
def api_base() -> Iterator[str]:
    with running_lm(SimulatedEngine(MIND), limits=ServerLimits(body=20_000)) as base:
        yield base


def over_http(api_base: str, **settings: Any) -> dspy.LM:
    return dspy.LM("openai/simulated", api_base=api_base, api_key="x", cache=False, **settings)


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(use_json_adapter_fallback=False), dspy.JSONAdapter()])
def test_an_answer_over_http_is_the_one_in_process(api_base: str, adapter: dspy.Adapter) -> None:
    def answers(lm: dspy.LM) -> list[Any]:
        with dspy.context(lm=lm, adapter=adapter):
            program = SearChain(TitleRetriever())
            return [program(question=q.question, answer_style=q.style).toDict() for q in QUESTIONS]

    def plain(rows: list[Any]) -> list[Any]:
        return [(row["answer"], row["final_content"], row["tree"], row["spent"]) for row in rows]

    in_process, served = answers(lm_of(MIND, cache=False, max_tokens=4096)), answers(over_http(api_base))  # its default
    assert plain(served) == plain(in_process)


def test_max_tokens_and_usage_travel(api_base: str) -> None:
    lm = over_http(api_base)
    lm(request(PlanChain, {"question": RIVER.question, "answer_style": "short"}, model=lm.model, max_tokens=4))
    assert lm.history[-1]["usage"]["completion_tokens"] == 4
    assert lm.history[-1]["usage"]["prompt_tokens"] > 100
    assert lm.history[-1]["response"].finish_reason == "length"


def test_models_and_health_say_simulated(api_base: str) -> None:
    names = [row["id"] for row in httpx.get(f"{api_base}/models").json()["data"]]
    assert names == ["simulated", f"simulated-{MIND.fingerprint}"]
    assert httpx.get(api_base.removesuffix("/v1") + "/health").json() == {"status": "ok", "model": names[1]}


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        (b"{", 400, "invalid_request", ""),
        (b'"\xff"', 400, "invalid_request", ""),
        (_HALF_A_CHARACTER, 400, "invalid_request", ""),
        (SAID | {"messages": []}, 400, "invalid_request", "message"),
        (SAID | {"messages": [{"role": "user"}]}, 400, "invalid_request", "messages[0].content"),
        (SAID | {"max_tokens": 0}, 400, "invalid_request", "max_tokens"),
        (SAID | {"temperature": 3}, 400, "invalid_request", "temperature"),
        (SAID | {"n": 2}, 400, "invalid_request", "'n'"),
        (SAID | {"model": "gpt-5"}, 404, "model_not_found", "gpt-5"),
        (SAID | {"messages": [{"role": "user", "content": "x" * 30_000}]}, 413, "request_too_large", "20000"),
    ],
)
def test_bad_requests_are_refused_in_openai_s_form(api_base: str, body: Any, status: int, code: str, says: str) -> None:
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    reply = httpx.post(f"{api_base}/chat/completions", **sent)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, code)
    assert says in error["message"]


@pytest.mark.parametrize("asks", [{}, {"stream_options": {"include_usage": True}}])
def test_a_reply_is_streamed_as_openai_streams_it(api_base: str, asks: dict[str, Any]) -> None:
    whole = httpx.post(f"{api_base}/chat/completions", json=SAID).json()
    reply = httpx.post(f"{api_base}/chat/completions", json=SAID | {"stream": True} | asks)
    assert reply.headers["content-type"].startswith("text/event-stream")
    *events, done = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    chunks = [json.loads(event) for event in events]
    assert done == "[DONE]"
    assert [chunk["usage"] for chunk in chunks if "usage" in chunk] == ([whole["usage"]] if asks else [])
    told = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(one["delta"].get("content", "") for one in told) == whole["choices"][0]["message"]["content"]
    assert len(told) > 5
    finished = [one["finish_reason"] for one in told if one["finish_reason"]]
    assert finished == [whole["choices"][0]["finish_reason"]]
