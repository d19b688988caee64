"""The bundled questions, a simulated LM that knows them, and SearChain over an index of word overlap."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import pytest
from reliability.small_world import WordIndex as WordIndex

from questree.data import Question, Task, load_task
from questree.metrics import Metric, metric
from questree.optimize import Examples, optimizer
from questree.optimize import compile as compile_program
from questree.optimize.result import Compiled
from questree.programs import SearChain
from questree.retrieval.corpora.corpus import read_corpus
from questree.simulate import Traits, simulated_lm

SEARCH = optimizer("bootstrap-random-search", candidates=1)


def every_question(task: Task) -> list[Question]:
    """The questions of all splits."""
    return [question for split in task.questions.values() for question in split]


@dataclass(frozen=True)
class Mini:
    """The bundled task, ready to be worked on."""

    index: WordIndex
    train: list[dspy.Example]
    dev: list[dspy.Example]
    metric: Metric

    def program(self) -> SearChain:
        return SearChain(self.index)

    def examples(self, train: int = 12, dev: int = 8) -> Examples:
        return Examples(self.train[:train], self.dev[:dev], task="mini")

    def compiled(self, by: Any = SEARCH, *, train: int = 12, dev: int = 8, **how: Any) -> Compiled:
        """Compile SearChain over the bundled questions, or another ``program``, on other ``examples``."""
        program, metric = how.pop("program", None) or self.program(), how.pop("metric", self.metric)
        examples = how.pop("examples", None) or self.examples(train, dev)
        return compile_program(program, examples, metric, optimizer=by, **how)


@pytest.fixture(scope="session")
def _task():
    return load_task("mini")


@pytest.fixture(scope="session")
def _index(_task):
    return WordIndex(list(read_corpus(_task.corpus)))


@pytest.fixture
def mini(_task, _index) -> Iterator[Mini]:
    """Inside, the simulated LM is configured; its replies come from no cache."""
    with _simulated(_task, _index) as world:
        yield world


@pytest.fixture(scope="session")
def searched(_task, _index, tmp_path_factory) -> tuple[Path, Compiled]:
    """A compilation by random search: its folder, to be copied before it is changed, and what it gave."""
    with _simulated(_task, _index) as mini:
        out = tmp_path_factory.mktemp("searched")
        return out, compile_program(mini.program(), mini.examples(), mini.metric, optimizer=SEARCH, out=out)


@pytest.fixture(scope="session")
def bootstrapped(_task, _index) -> SearChain:
    """A compiled program, to be copied before it is changed."""
    with _simulated(_task, _index) as mini:
        return compile_program(mini.program(), mini.examples(), mini.metric, optimizer="bootstrap-few-shot").program


@contextmanager
def _simulated(_task, _index) -> Iterator[Mini]:
    with dspy.context(lm=simulated_lm(every_question(_task), Traits(malformed=0), cache=False), adapter=None):
        yield Mini(_index, _task.examples("train"), _task.examples("dev"), metric("by-style"))
