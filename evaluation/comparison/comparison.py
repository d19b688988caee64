"""Several programs, or one under several settings, asked the same questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...common.files import alone_in, write_atomically
from ...lm.ledger import total
from ...lm.policy import OutOfBudgetError, RunPolicy
from ...metrics import Interval, paired_interval
from ...programs import Program
from ..evaluation import Evaluation
from ..identity import lm_facts, retriever_facts
from ..records import ScoreFunction, metric_name
from ..run import Progress, evaluate, run_identity
from ..tracking import OFF, Tracking
from .page import as_page
from .table import Row, as_csv, as_json, as_markdown, rows


@dataclass(frozen=True)
class Comparison:
    """Evaluations over the same questions, by the name of what was evaluated; the first is compared with.

    Attributes:
        title: what was done.
        task, lm, retriever: by name; the retriever's is empty where no program has one.
        methods: of the programs that have their kind's own settings, the registered name.
        stopped: why there are fewer evaluations than programs; None where all were made.
    """

    evaluations: Mapping[str, Evaluation]
    title: str = "compare"
    task: str = ""
    lm: str = ""
    retriever: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def metric(self) -> str:
        """The metric that the programs are compared by."""
        return self._first.metric

    @cached_property
    def rows(self) -> list[Row]:
        """The table's rows."""
        return rows(self)

    @property
    def facts(self) -> list[str]:
        """What all of it rests on, for people."""
        facts = {"task": self.task, "questions": str(self._first.n), "LM": self.lm, "retriever": self.retriever}
        return [f"{what}: {fact}" for what, fact in facts.items() if fact]

    @property
    def how_to_read(self) -> str:
        """What stands in the table."""
        return (
            f"Intervals hold 95% of means over resampled questions (n={self._first.n}); differences are paired, "
            "question by question. A failed question earns nothing and is counted apart. Calls, words, rounds and "
            "seconds are of a question, cost is of all; what the client's cache answered is free, and counts as a call."
        )

    @property
    def simulated(self) -> bool:
        """Whether any of it was made with the simulated LM."""
        return any(evaluation.simulated for evaluation in self.evaluations.values())

    def difference(self, name: str) -> Interval:
        """What ``name`` scores more than the first, question by question, with its 95% interval."""
        first, other = self._first, self.evaluations[name]
        scores = ([record.scores[first.metric] for record in one.records] for one in (first, other))
        return paired_interval(*scores, seed=first.seed)

    def files(self) -> dict[str, str]:
        """The comparison as a table, in several forms, and as a page: texts by the file that each belongs in."""
        return {
            "table.md": as_markdown(self),
            "table.csv": as_csv(self),
            "comparison.json": as_json(self),
            "page.html": as_page(self),
        }

    @property
    def _first(self) -> Evaluation:
        return next(iter(self.evaluations.values()))


def compare(
    programs: Mapping[str, Program],
    examples: Sequence[dspy.Example],
    metrics: Sequence[ScoreFunction],
    *,
    task: str = "",
    out: Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    tracking: Tracking = OFF,
    title: str = "compare",
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Comparison:
    """Evaluate each program on the same questions, with the same metrics, LM and policy.

    Args:
        programs: by the name that they are shown under; the others are compared with the first.
        examples, metrics, task, seed: as `evaluate` takes them.
        policy: as `evaluate` takes it; a budget in it is for all programs together. Where it is used up, the
            programs that were evaluated until then are compared, and ``stopped`` says how to go on.
        out: each program's run is kept in a folder of its name in here, and gone on with; the files of the
            comparison (`Comparison.files`) stand beside them.
        tracking: one parent run with the files of the comparison, and a nested run for each program.
        title: of the parent run.
        on_progress: called with the name of the program that is asked.

    Raises:
        QuestreeError: if there are no programs, or another process is writing ``out``; and as `evaluate`, an
            `OutOfBudgetError` only where not even the first program could be evaluated.
    """
    if not programs:
        raise QuestreeError("There is nothing to compare; name at least one program.")
    simulated, bounds = bool(lm_facts()["simulated"]), (policy or RunPolicy()).model_dump(exclude_none=True)
    parent = {"task": task, "questions": len(examples), "programs": ", ".join(programs), "policy": bounds}
    with (
        alone_in(out, "the comparison") if out else nullcontext(),
        tracking.run(title, parent, simulated=simulated) as tracked,
    ):
        evaluations: dict[str, Evaluation] = {}
        stopped: str | None = None
        for name, program in programs.items():
            spent = total([evaluation.spent for evaluation in evaluations.values()])
            facts = run_identity(program, task=task) | {"metrics": [metric_name(metric) for metric in metrics]}
            try:
                with tracking.run(name, facts, simulated=simulated) as nested, nested.traces():
                    evaluations[name] = evaluate(
                        program,
                        examples,
                        metrics,
                        task=task,
                        out=out and out / name,
                        seed=seed,
                        policy=policy,
                        spent_before=spent,
                        on_progress=_named(on_progress, name),
                    )
                    nested.evaluation(evaluations[name])
            except OutOfBudgetError as error:
                if not evaluations:
                    raise
                stopped = f"{name}: {error}"
                break
        comparison = Comparison(evaluations, title, task, **_shared(programs), stopped=stopped)
        files = comparison.files()
        for file, text in files.items():
            if out is not None:
                write_atomically(out / file, text)
        tracked.texts(files)
    return comparison


def _shared(programs: Mapping[str, Program]) -> dict[str, Any]:
    """What a comparison says of its programs' parts."""
    retrievers = dict.fromkeys(facts["name"] for facts in map(retriever_facts, programs.values()) if facts)
    own = {name: program.name for name, program in programs.items() if program.settings == program.Settings()}
    return {"lm": str(lm_facts()["name"]), "retriever": ", ".join(retrievers), "methods": own}


def _named(on_progress: Callable[[str, Progress], None] | None, name: str) -> Callable[[Progress], None] | None:
    return None if on_progress is None else lambda progress: on_progress(name, progress)
