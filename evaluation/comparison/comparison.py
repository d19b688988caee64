"""Comparisons: several programs, or one under several settings, are asked the same questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...common.files import write_atomically
from ...lm.limits import RunPolicy
from ...programs import Program
from ...programs.program import checked_program
from ..evaluation import Evaluation
from ..identity import lms_facts, retriever_facts
from ..kept_run import begin
from ..leak import refuse_demonstrated
from ..record_scores import ScoreFunction, checked_metrics
from ..run import Progress
from ..series import ask_each, evaluate_tracked, named_progress, running_series, told_of
from ..tracking import OFF, Tracking
from .page import as_page
from .rows import Comparison


def compare(
    programs: Mapping[str, Program],
    examples: Sequence[dspy.Example],
    metrics: ScoreFunction | Sequence[ScoreFunction],
    *,
    task: str = "",
    out: str | Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    tracking: Tracking = OFF,
    title: str = "compare",
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Comparison:
    """Evaluate each program on the same questions, with the same metrics, LM and policy.

    Args:
        programs: by name; the others are compared with the first.
        examples, metrics, task, seed: see `evaluate`.
        policy: see `evaluate`; a budget in it is for all programs together. When it is used up, or the LM answers
            no program, the programs that were evaluated until then are compared, and ``stopped`` says how to go on.
            A program that fails by itself is left out, and ``stopped`` names it.
        out: a folder. All runs are in the file ``runs.db`` in it, which the same comparison resumes; the files of the
            comparison (`files_of`) stand beside it.
        tracking: makes a parent run with the files of the comparison, and a nested run for each program.
        title: of the parent run.
        on_progress: called with the name of the program that is asked, and how far it is.

    Raises:
        QuestreeError: if there are no programs, a name cannot be a folder's, or another process is writing ``out``;
            also what `evaluate` raises, but an `OutOfBudgetError` or a `GivenUpError` only if no program could be
            evaluated.
    """
    _check_programs(programs)
    metrics, out = checked_metrics(metrics, examples), None if out is None else Path(out)
    refuse_demonstrated(programs.values(), examples)
    how: dict[str, Any] = {"task": task, "seed": seed, "policy": policy, "tracking": tracking}
    about = {"task": task, "questions": len(examples), "programs": ", ".join(programs)}
    with running_series(title, out, "comparison", list(programs.values()), about, policy, tracking) as (file, tracked):
        # checks all programs before the first is paid for
        kept = {name: begin(file, name, one, task, policy) for name, one in programs.items()} if file else {}
        evaluations = dict[str, Evaluation]()

        def ask(name: str) -> None:
            told = named_progress(on_progress, name)
            with told_of(name):
                evaluations[name] = evaluate_tracked(
                    name, programs[name], examples, metrics, out=kept.get(name), on_progress=told, **how
                )

        stopped = ask_each(programs, ask, evaluations)
        shared = _shared({name: programs[name] for name in evaluations})
        comparison = Comparison(evaluations, title, task, **shared, stopped=stopped)
        files = files_of(comparison) if file or tracked.on else {}
        if out is not None and file is not None:
            file.order(list(programs))
            for name, text in files.items():
                write_atomically(out / name, text)
        tracked.figures({"score": max(one.score.mean for one in evaluations.values())})
        tracked.texts(files)
    return comparison


def _check_programs(given: Any) -> None:
    """Raise a `QuestreeError` unless there are programs, each with a name that a folder can have."""
    if not given:
        raise QuestreeError("There is nothing to compare; name at least one program.")
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise QuestreeError(f'Give a name and a program for each, {{"searchain": program}} for example, not a {kind}.')
    for name, program in given.items():
        checked_program(program)
        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name:
            raise QuestreeError(f"{name!r} cannot be the name of a program here: ``OUT/NAME`` is the place of its run.")


def files_of(comparison: Comparison) -> dict[str, str]:
    """Return the comparison as a table, in several forms, and as a page: texts by the name of their file."""
    return {
        "table.md": comparison.as_markdown(),
        "table.csv": comparison.table.as_csv(),
        "comparison.json": comparison.as_json(),
        "page.html": as_page(comparison),
    }


def _shared(programs: Mapping[str, Program]) -> dict[str, Any]:
    """Return the facts about the parts that the programs share."""
    retrievers = dict.fromkeys(facts["name"] for facts in map(retriever_facts, programs.values()) if facts)
    lms = sorted({lms_facts(program)["name"] for program in programs.values()})
    return {"lm": ", ".join(lms), "retriever": ", ".join(retrievers), "methods": _methods(programs)}


def _methods(programs: Mapping[str, Program]) -> dict[str, str]:
    """Return the registered names of the programs that stand for a paper's method, by their names here.

    Those are the programs with the paper's preset; where none of a kind has it, those with its default settings.
    """
    papers = {program.name for program in programs.values() if _as_in_paper(program)}
    return {
        name: program.name
        for name, program in programs.items()
        if (_as_in_paper(program) if program.name in papers else program.settings == type(program.settings)())
    }


def _as_in_paper(program: Program) -> bool:
    kind = type(program.settings)
    return "preset" in kind.model_fields and program.settings == kind(preset="paper")
