"""LM servers that answer in other dress than OpenAI's, as public reports describe them: no question is lost.

Each is asked by a thread, on an event loop, and there for a stream.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from unittest.mock import patch

import dspy

from questree.lm import retries as waiting
from questree.lm.failure import counting_failures
from questree.lm.limits import Limits, limited
from questree.lm.progress import Event, telling
from questree.programs import Program, build
from questree.simulate import SimulatedEngine
from questree.simulate.server import chat_completion, chunks, request_of

from .faulty_server import Schedule, at_fault
from .small_world import small_world
from .tally import Tally

Body = dict[str, Any]
Answer = tuple[int, Any]
Way = Literal["thread", "loop", "stream"]
WAYS: tuple[Way, ...] = ("thread", "loop", "stream")


@dataclass(frozen=True)
class Dress:
    """How a server answers.

    Attributes:
        kind: its name.
        change: what becomes of its completion; None for none in its place.
        error: what it answers instead to such a request, if it does.
        once: whether only the first of all requests meets it.
        is_whole: whether it answers whole where a stream was asked for.
        ends: what the question must come to: the ``answer`` to the first request; to ``another`` one; to the same
            ``after a wait``; to the same ``without`` what was refused; or ``auth``, after a single request.
    """

    kind: str
    change: Callable[[Body], Body] = lambda whole: whole
    error: Callable[[Body], Answer | None] = lambda asked: None
    once: bool = False
    is_whole: bool = False
    ends: Literal["answer", "another", "after a wait", "without", "auth"] = "answer"


def _ending(word: Any, *, cut: bool = False) -> Callable[[Body], Body]:
    """Return what ends a completion with a word; if it is cut, in its last value: it can be read as a whole one."""

    def ended(whole: Body) -> Body:
        [choice] = whole["choices"]
        text = choice["message"]["content"]
        message = {**choice["message"], "content": text.partition("[[ ## completed")[0].rstrip()[:-2] if cut else text}
        return {**whole, "choices": [{**choice, "message": message, "finish_reason": word}]}

    return ended


def _with_choices(value: Any, whole: Body) -> Body:
    return {**whole, "choices": value}


def _told(**usage: Any) -> Callable[[Body], Body]:
    return lambda whole: {**whole, "usage": {**whole["usage"], **usage}}


def _refusing(option: str, message: str) -> Callable[[Body], Answer | None]:
    refusal = {"error": {"message": message, "type": "invalid_request_error", "param": option, "code": None}}
    return lambda asked: (400, refusal) if asked.get(option) is not None and asked[option] is not False else None


def _error(code: Any) -> Callable[[Body], Answer]:
    return lambda asked: (200, {"error": {"message": "said by the server", "code": code}})


_OPENAI = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."
)
_RENAMED = "Unsupported parameter: 'max_completion_tokens' is not supported with this model."
_VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 4796 tokens (700 in the messages, 4096 "
    "in the completion)."
)
_SGLANG = (
    "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4796 "
    "tokens: 700 tokens from the input messages and 4096 tokens for the completion."
)
_ENDS = ("STOP", "eos", "eos_token", "end_turn", "Stop_Sequence", "", None)
_OBJECT = {"object": "error", "message": "said by the server", "code": 50001}
DRESSES = (
    *(Dress(f"end {word!r}", _ending(word)) for word in _ENDS),
    Dress("usage as floats", _told(prompt_tokens=12.0, completion_tokens=7.0, total_tokens=19.0)),
    Dress("usage in fractions", _told(prompt_tokens=12.5, completion_tokens=7.25)),
    Dress("usage in quotes", _told(prompt_tokens="12", completion_tokens="7", total_tokens="19")),
    Dress("usage below zero", _told(prompt_tokens=-1, completion_tokens=-1, total_tokens=-2)),
    Dress("usage in words", _told(prompt_tokens="unknown", completion_tokens="n/a", total_tokens=True)),
    Dress("details as a list", _told(prompt_tokens_details=[], completion_tokens_details=[{"reasoning_tokens": 1}])),
    Dress("details in quotes", _told(completion_tokens_details={"reasoning_tokens": "1", "audio_tokens": -1})),
    Dress("usage as a list", lambda whole: {**whole, "usage": [1, 2]}),
    *(
        Dress(f"broken off, {word}", _ending(word, cut=True), once=True, ends="another")
        for word in ("abort", "insufficient_system_resource", "SAFETY", "time_limit", "content_filter", "error")
    ),
    *(
        Dress(f"cut, {word}", _ending(word, cut=True), once=True, ends="another")
        for word in ("LENGTH", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length")
    ),
    *(
        Dress(f"choices {value!r}", partial(_with_choices, value), once=True, ends="after a wait")
        for value in (None, [], [None])
    ),
    Dress("no choices", lambda whole: {"id": whole["id"], "usage": whole["usage"]}, once=True, ends="after a wait"),
    Dress("object error", error=lambda asked: (200, _OBJECT), once=True, ends="after a wait"),
    *(
        Dress(f"error {code!r} with 200", error=_error(code), once=True, ends="after a wait")
        for code in (429, "429", 503, 529, None)
    ),
    *(Dress(f"error {code!r} with 200", error=_error(code), ends="auth") for code in (401, 402, 403, "401")),
    Dress("no temperature, OpenAI", error=_refusing("temperature", _OPENAI), ends="without"),
    Dress("no temperature, Anthropic", error=_refusing("temperature", "`temperature` is deprecated for this model."),
          ends="without"),
    *(
        Dress(f"no bound of the reply, {server}", error=_refusing("max_completion_tokens", message), ends="without")
        for server, message in (("Azure", _RENAMED), ("vLLM", _VLLM), ("SGLang", _SGLANG))
    ),
    Dress("no stream", error=_refusing("stream", "Streaming is not supported for this model."), ends="without"),
    Dress("no stream_options", error=_refusing("stream_options", "Unknown field: stream_options"), ends="without"),
    Dress("never a stream", is_whole=True),
)  # fmt: skip
"""What vLLM, SGLang, Mistral, Databricks, Azure, DeepSeek, Anthropic, TGI and gateways send, in their form."""


def server_dress_report(dresses: Sequence[Dress] = DRESSES, questions: int = 2, program: str = "cot") -> Tally:
    """Ask each of the first questions of each server, in each way."""
    examples, retriever, engine = small_world()
    tally = Tally()
    asked = build(program, {}, retriever=retriever)
    for example in examples[:questions]:
        with dspy.context(lm=dspy.LM("simulated/plain", engine=engine, cache=False), adapter=None):
            proper = asked(**example.inputs()).answer
        for dress in dresses:
            for way in WAYS:
                held = Server(dress, engine).asked(asked, example.inputs(), proper, way, tally)
                case = f"{program}, {example.id}, {way}: {[one for one in held if not held[one]]}"
                tally.check(dress.kind, all(held.values()), case)
    return tally


class Server:
    """A server in a dress; it keeps what it was asked."""

    def __init__(self, dress: Dress, engine: SimulatedEngine):
        self.dress, self.engine, self.seen = dress, engine, list[Body]()

    def answer(self, path: str, body: bytes) -> Answer:
        """Answer a request."""
        asked, dress = json.loads(body), self.dress
        self.seen.append(asked)
        whole, said = chat_completion(self.engine.reply_to(request_of(asked))), None
        if len(self.seen) == 1 or not dress.once:
            whole, said = dress.change(whole), dress.error(asked)
        if said:
            return said
        if not asked.get("stream") or dress.is_whole or not (whole.get("choices") or [None])[0]:
            return 200, whole
        events = [*map(json.dumps, chunks(whole, with_usage=True)), "[DONE]"]
        return 200, "".join(f"data: {event}\n\n" for event in events).encode()

    def asked(self, program: Program, inputs: Any, proper: str, way: Way, tally: Tally) -> dict[str, bool]:
        """Ask a question, and once more: what was refused is not sent again. Return what holds of it."""
        waits, dress = list[int](), self.dress

        def no_wait(retry: int, error: Exception) -> float:
            waits.append(retry)
            return 0.0

        with ExitStack() as stack:
            address = stack.enter_context(at_fault(self.answer, Schedule([])))
            stack.enter_context(patch.object(waiting, "wait_before", no_wait))
            lm = dspy.LM("openai/simulated", api_base=f"{address}/v1", api_key="none", cache=False, temperature=0.0)
            stack.enter_context(dspy.context(lm=lm, adapter=None))
            stack.enter_context(counting_failures())
            stack.enter_context(limited(Limits(timeout=10, retries=2, deadline=60)))
            first = answered(program, inputs, way)
            requests = len(self.seen)
            again = first if dress.once or dress.ends == "auth" else answered(program, inputs, way)
        is_lost = dress.ends != "auth" and bool(first.failure or again.failure)
        tally.found.update(questions=1, lost=int(is_lost))
        refused = int(dress.ends == "without" and dress.error(self.seen[0]) is not None)
        failed = refused or int(dress.ends in ("after a wait", "auth"))
        replies = {"auth": 0, "another": 2}.get(dress.ends, 1)
        spent = first.spent
        return {
            "answered": not is_lost,
            "its cause": dress.ends != "auth" or (first.failure is not None and first.failure.cause == "auth"),
            "the answer": dress.ends in ("auth", "another") or first.answer == again.answer == proper,
            "requests": requests == replies + failed and len(self.seen) - requests == (again is not first),
            "told": (spent.calls, spent.failed) == (replies, failed),
            "tokens": dress.ends == "auth" or min(spent.tokens_in, spent.tokens_out) > 0,
            "waits": len(waits) == (dress.ends == "after a wait"),
        }


def answered(program: Program, inputs: Any, way: Way) -> dspy.Prediction:
    """Ask a program; for a stream as a service does, where somebody looks on."""
    if way == "thread":
        return program(**inputs)

    async def asked() -> dspy.Prediction:
        with telling(_Follower()) if way == "stream" else nullcontext():
            return await program.acall(**inputs)

    return asyncio.run(asked())


class _Follower:
    """Somebody who looks on while a question is answered, as the pages of a service do."""

    followed = True

    def hear(self, event: Event) -> None:
        """Take an event."""
