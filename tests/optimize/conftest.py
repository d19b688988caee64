"""The bundled task, for the tests of this room."""

import pytest
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import bootstrapped as bootstrapped
from mini_task import mini as mini
from mini_task import searched as searched

from questree.programs.modules.chain_of_query import ChainOfQuery


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
