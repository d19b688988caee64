"""Bare `dspy.Predict` over recorded calls, in a process that never imported Questree; `overhead.py` starts it.

    python benchmarks/bare_predict.py CALLS 64

For each line that it reads it makes all calls once, and prints, as JSON, what they took.
"""

import gc
import json
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import dspy
from dspy.lm15 import Request, Response
from dspy.utils.exceptions import AdapterParseError

SECONDS = 0.5
Calls = list[tuple[dspy.Predict, dict[str, Any]]]


class MadeBeforehand:
    """Gives replies after a while, each made once."""

    def __init__(self, known: dict[Any, Response], make: Callable[[Request], Response] | None = None):
        self.known, self.make, self.calls, self.seconds = known, make, 0, 0.0

    def reply(self, request: Request) -> Response:
        """Return the reply to a request, made now if it was not made before."""
        self.calls += 1
        prompt = (request.system, *(message.text for message in request.messages))
        if prompt not in self.known and self.make is not None:
            self.known[prompt] = self.make(request)
        return self.known[prompt]

    def complete(self, request: Request) -> Response:
        """Reply on a thread."""
        time.sleep(self.seconds)
        return self.reply(request)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def use(engine: MadeBeforehand) -> None:
    """Make the engine the LM of this process."""
    lm = dspy.LM("made/beforehand", engine=engine, cache=False)
    dspy.configure(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False))


def measured(engine: MadeBeforehand, run: Callable[[], Any]) -> list[float]:
    """Return what a run takes: LM calls, seconds by the clock, seconds of the processor."""
    engine.seconds = SECONDS
    before, clock, processor = engine.calls, time.perf_counter(), time.process_time()
    run()
    return [engine.calls - before, time.perf_counter() - clock, time.process_time() - processor]


def ask_on_threads(calls: Calls, most: int, ask: Callable[..., Any] = dspy.Predict.__call__) -> None:
    """Make the calls, so many at a time."""

    def ask_one(predict: dspy.Predict, given: dict[str, Any]) -> None:
        with dspy.context(trace=[]):
            ask(predict, **given)

    with ThreadPoolExecutor(most) as pool:
        for outcome in [pool.submit(copy_context().run, ask_one, *call) for call in calls]:
            fault = outcome.exception()
            if fault and not isinstance(fault.__cause__ or fault, AdapterParseError):  # that was there before, too
                raise fault


def main(path: str, most: int) -> None:
    """Run the recorded calls as often as is asked for."""
    calls, known = pickle.loads(Path(path).read_bytes())
    engine = MadeBeforehand(known)
    use(engine)
    gc.freeze()
    for _ in sys.stdin:
        print(json.dumps(measured(engine, lambda: ask_on_threads(calls, most))), flush=True)
    assert "questree" not in sys.modules, [name for name in sys.modules if name.startswith("questree")]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
