"""The program, the adapter and the metrics of a run in a capsule, by the present code."""

from __future__ import annotations

from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...lm.guard import ADAPTERS, adapter_named
from ...metrics import METRICS, metric
from ...programs import Program, build
from ..record_scores import ScoreFunction
from ..stored_runs import StoredRun


def adapter_of(run: StoredRun) -> dspy.Adapter | None:
    """Return the adapter that wrote the prompts of a run; None for the default adapter."""
    adapter = run.part("lm").get("adapter", "chat")
    if adapter not in ADAPTERS:
        raise QuestreeError(f"{run.name}: the adapter {adapter!r} is not known here.")
    return adapter_named(adapter)


def program_of(run: StoredRun, **parts: Any) -> Program:
    """Return the program of a run, made by the present code; a compiled one with its stored prompts.

    Args:
        parts: ``retriever``, ``reader``, ``duplicates``.
    """
    reader, state = run.part("reader"), run.environment.state

    def coded() -> Program:
        name = run.environment.program or str(run.identity.get("program"))
        program = build(name, run.part("settings"), **parts)
        if reader and parts["reader"] is None:
            program.reader.threshold = reader.get("threshold")
        return program

    try:
        return coded() if state is None else state.program(coded)
    except ValueError as problem:
        raise QuestreeError(f"{run.name}: its compiled program does not fit this version: {problem}.") from problem


def metrics_of(run: StoredRun) -> list[ScoreFunction]:
    """Return the metrics that scored a run."""
    metrics: list[ScoreFunction] = [metric(one) for one in run.records[0].scores if one in METRICS]
    if not metrics:
        raise QuestreeError(f"{run.name}: no metric that scored it is known here.")
    return metrics
