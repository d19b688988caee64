"""The simulated model behind dspy's engine contract, and the LM around it."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import lru_cache
from typing import Any

import dspy
from dspy.clients.engines.base import validate_request
from dspy.lm15 import (
    Message,
    Request,
    Response,
    StreamDeltaEvent,
    TextDelta,
    TextPart,
    Usage,
    response_to_events,
)

from ..data import Question
from ..lm.episode import here
from .mind import Mind, Traits
from .prompt import read_prompt
from .reply import cut, pieces, write_reply
from .world import World


class SimulatedEngine:
    """A mind behind dspy's engine contract (3.4).

    At temperature 0, or where none is given, a reply is a function of prompt and mind alone. Above it, the reply also
    depends on temperature, top_p and token limit, and on the request's own seed. Without a seed it depends on how many
    times this engine was asked the same before: DSPy keeps ``rollout_id`` to itself, so counting is the only way in
    which a second retry can differ from the first. What is asked at the same time is counted apart, by its place among
    the question's steps. So the n-th sample of a prompt is the same in every process, whichever thread is the fastest.
    """

    def __init__(self, mind: Mind):
        self.mind = mind
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        """Reply to one request, after the latency that the traits give it."""
        response = self.reply_to(request)
        if self.mind.traits.latency:
            time.sleep(self.mind.traits.latency)
        return response

    def reply_to(self, request: Request) -> Response:
        """Reply to one request, at once."""
        validate_request(request)
        prompt = read_prompt(request)
        whole = write_reply(self.mind, prompt, self._salt(request, prompt.text))
        text, was_cut = cut(whole, request.config.max_tokens)
        tokens_in, tokens_out = len(prompt.text.split()), len(text.split())
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="length" if was_cut else "stop",
            usage=Usage(input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out),
        )

    def stream(self, request: Request) -> Iterator[Any]:
        """Return the same reply as events, a word in each."""
        return word_events(self.complete(request))

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def not_known(self, question: str) -> str:
        """Return what to say of a question that is not of its world, with two that are; empty for one that is."""
        world = self.mind.world
        if world.question(question) or world.fact(question):
            return ""
        claims_last = sorted(world.questions, key=lambda known: not known.question.endswith("?"))
        two = " and ".join(f"“{known.question}”" for known in claims_last[:2])
        return f"The {self.mind.kind} LM knows only the questions of its task (--task), such as {two}."

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedEngine:
        """Return the engine itself: copies of a program share their LM's connection."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how MLflow's DSPy flavour writes a program's LM down: it is made anew, and was asked nothing."""
        return SimulatedEngine, (self.mind,)

    def _salt(self, request: Request, text: str) -> str:
        config = request.config
        if not config.temperature:
            return ""
        nucleus = "" if config.top_p is None else f"|{config.top_p}"
        sampling = f"{config.temperature}|{config.max_tokens}|{config.seed}{nucleus}"
        if config.seed is not None:
            return sampling
        sampling += "".join(f"|{step}" for step in here())
        asked = hashlib.blake2b(f"{sampling}|{text}".encode(), digest_size=16).hexdigest()
        with self._lock:
            self._asked[asked] += 1
            return f"{sampling}|{self._asked[asked]}"


class AsyncSimulatedEngine:
    """The same engine for callers that await."""

    def __init__(self, engine: SimulatedEngine):
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        """Reply to one request, after the latency that the traits give it."""
        response = self.engine.reply_to(request)
        if self.engine.mind.traits.latency:
            await asyncio.sleep(self.engine.mind.traits.latency)
        return response

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the same reply as events, a word in each; the latency is that of the whole."""
        events = list(word_events(self.engine.reply_to(request)))
        for event in events:
            await asyncio.sleep(self.engine.mind.traits.latency / len(events))
            yield event

    async def aclose(self) -> None:
        """Do nothing: nothing is held open."""


def word_events(response: Response) -> Iterator[Any]:
    """Yield a response as events, a word in each."""
    for event in response_to_events(response):
        if event.type == "delta":
            yield from (StreamDeltaEvent(TextDelta(piece)) for piece in pieces(event.delta.text))
        else:
            yield event


def simulated_lm(questions: Iterable[Question], traits: Traits | None = None, **settings: Any) -> dspy.LM:
    """Return a simulated LM, which is asked like any other.

    Args:
        questions: all that it can be asked about; give every split, since it knows no other questions.
        traits: what it is like.
        settings: of `dspy.LM`, such as ``temperature`` or ``cache``.
    """
    return lm_of(Mind(_world_of(tuple(questions)), traits or Traits()), **settings)


_world_of = lru_cache(maxsize=2)(World)
"""Returns the world of these questions; minds over the same ones share it, since nothing changes it."""


def lm_of(mind: Mind, **settings: Any) -> dspy.LM:
    """Return an LM with this mind. Its name tells minds apart, so DSPy's cache never takes one for another."""
    engine = SimulatedEngine(mind)
    name = f"{mind.kind}/{mind.fingerprint}"
    return dspy.LM(name, engine=engine, async_engine=AsyncSimulatedEngine(engine), num_retries=0, **settings)


def credulous_lm(lm: dspy.LM, share: float) -> dspy.LM:
    """Return the same simulated or recorded LM, which falls for this share of what passages claim or order."""
    mind = copy.copy(lm.engine.mind)
    mind.traits = mind.traits.model_copy(update={"credulous": share})
    return lm_of(mind, temperature=lm.kwargs.get("temperature"))
