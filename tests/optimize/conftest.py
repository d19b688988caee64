"""The bundled task, for the tests of this room."""

import pytest
from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import bootstrapped as bootstrapped
from mini_task import mini as mini
from mini_task import searched as searched

from questree.programs import searchain


@pytest.fixture
def change_the_plan(monkeypatch):
    """Give the prompt of SearChain's plan other words, once it is called."""

    def change():
        class PlanChain(searchain.PlanChain):
            """Lay out another chain."""

        monkeypatch.setattr(searchain, "PlanChain", PlanChain)

    return change
