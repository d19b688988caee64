"""A world to ask about, and an LM behind a server at fault; the benchmarks' reports run here with few cases."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import dspy
import lms
import pytest
from fakes import ScriptedEngine
from reliability.faulty_lm import faulty_lm
from reliability.faulty_server import Fault, Schedule
from reliability.small_world import small_world


@pytest.fixture(scope="session")
def world() -> SimpleNamespace:
    """Questions, a retriever and an engine of a simulated LM."""
    examples, retriever, engine = small_world()
    return SimpleNamespace(examples=examples, retriever=retriever, engine=engine)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited before retries, in no time."""
    taken: list[float] = []
    monkeypatch.setattr("questree.lm.retries.sleep", taken.append)
    return taken


@pytest.fixture
def behind(world: SimpleNamespace, waits: list[float]) -> Iterator[Callable[..., Any]]:
    """Put the LM of this test behind faults (``rate=1``: nothing else); gives the schedule, which counts."""
    with ExitStack() as contexts:

        def put(*faults: Fault, rate: float = 1, seed: int = 0, **lm: Any) -> Schedule:
            schedule = Schedule(faults, rate, seed)
            address = contexts.enter_context(faulty_lm(world.engine, schedule))
            settings = {"cache": False, "timeout": 1.0, "num_retries": 2, **lm}
            contexts.enter_context(
                dspy.context(lm=dspy.LM("openai/simulated", api_base=address, api_key="none", **settings), adapter=None)
            )
            return schedule

        yield put


_scripted = lms.scripted


@pytest.fixture
def scripted(waits: list[float], _scripted: Callable[..., ScriptedEngine]) -> Callable[..., ScriptedEngine]:
    """Make the LM of this test give the replies in order, as elsewhere, and wait for none."""
    return _scripted
