"""A forked process: its own connections and threads, and right answers."""

import asyncio
import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from tiny_world import QUESTIONS, RIVER, SURE, TitleRetriever

from questree.common.forks import renew_in_forks
from questree.lm.kept_replies import ReplyStore
from questree.programs import build
from questree.simulate import SimulatedEngine, simulated_lm
from questree.simulate.server import running_lm

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_fork(check: Callable[[], Any]) -> None:
    """Check something in a forked process, within a time: a hang is what is looked for."""
    process = multiprocessing.get_context("fork").Process(target=check)
    process.start()
    process.join(30)
    try:
        assert process.exitcode == 0
    finally:
        process.kill()


def test_a_holder_is_renewed_in_the_fork_and_not_here():
    class Holder:
        renewed = 0

        def renew(self) -> None:
            self.renewed += 1

    def check() -> None:
        assert holder.renewed == 1

    holder = Holder()
    renew_in_forks(holder)
    in_fork(check)
    assert holder.renewed == 0


def test_kept_replies_are_read_and_kept(tmp_path):
    store = ReplyStore(tmp_path)
    store.set("before", "kept")

    def check() -> None:
        assert store.get("before") == "kept"
        assert store.set("after", "kept too")

    in_fork(check)
    assert store.get("after") == "kept too"


def test_a_question_is_answered_with_and_without_an_event_loop():
    program = build("searchain", {}, retriever=TitleRetriever())
    with running_lm(SimulatedEngine(simulated_lm(QUESTIONS, SURE).engine.mind)) as address:
        lm = dspy.LM("openai/simulated", api_base=address, api_key="x", cache=False)

        def check() -> None:
            assert program(question=RIVER.question).answer == "Vltava"
            assert asyncio.run(program.acall(question=RIVER.question)).answer == "Vltava"

        with dspy.context(lm=lm, adapter=None):
            check()
            in_fork(check)
            check()
