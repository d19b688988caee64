"""The bundled task, and what LMs are asked, for the tests of this room."""

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import bootstrapped as bootstrapped
from mini_task import mini as mini
from mini_task import searched as searched

from questree.programs.modules.chain_of_query import ChainOfQuery


class Heard(BaseCallback):
    """What LMs were asked, in order; how many replies they gave, and how many to the call that had most."""

    def __init__(self):
        self.asked, self.calls, self.most = [], 0, 1

    def on_lm_start(self, call_id, instance, inputs):
        self.asked.append((instance, inputs["messages"]))

    def on_lm_end(self, call_id, outputs, exception=None):
        self.calls, self.most = self.calls + len(outputs), max(self.most, len(outputs))


@pytest.fixture
def heard():
    """The calls of this test."""
    with dspy.context(callbacks=[callback := Heard()]):
        yield callback


@pytest.fixture
def change_the_plan(monkeypatch):
    """Give the prompt of SearChain's plan other words, once it is called."""

    def change():
        class PlanChain(ChainOfQuery().plan.signature):
            """Lay out another chain."""

        made = ChainOfQuery.__init__

        def changed(self):
            made(self)
            self.plan.signature = PlanChain

        monkeypatch.setattr(ChainOfQuery, "__init__", changed)

    return change
