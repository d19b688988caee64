"""questree replay"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings
from . import options
from .screen import SIMULATED, clear_stdout, echo, print_json

if TYPE_CHECKING:
    from ..evaluation.capsule import Drift, ReplayedRun
    from ..evaluation.capsule.differences import Difference
    from ..parts import Parts
    from ..retrieval import Retriever

_OFFLINE = ("allow_code",)  # the settings that a replay without --live looks at


def replay(
    # the adapter is that of the run, and a prompt that changed is a difference
    settings: Annotated[
        RunSettings,
        "- split limit leave_out reader duplicates defence TRACKING adapter allow_changed_signatures",
    ],
    context: typer.Context,
    capsule: Path,
    question: str | None = None,
    live: bool = False,
    as_json: options.AsJson = False,
) -> None:
    """Ask a capsule's questions by the code that is installed here: no LM and no index is asked, unless --live.

    Exit code 1 if a record differs; then it says for each prompt what changed, and for each question where first.
    With --live, searches find the passages of the capsule; for new queries, name an index with --retriever.

    Args:
        capsule: A file of `questree pack`.
        question: The id of a question: show everything that differs in it.
        live: Ask the LM of --lm again, and report what became of score and answers.
    """
    from ..evaluation.capsule import replay as replayed
    from ..evaluation.stored_runs import open_runs
    from ..parts import Parts

    idle = "" if live else _idle(context)
    options.refuse((idle, f"without --live nothing is asked: leave {idle} out"))
    parts = Parts(settings)
    if question is not None:  # before anything is paid for
        ids = [record.id for run in open_runs(capsule) for record in run.records]
        if question not in ids:
            raise QuestreeError(f"The capsule has no question {question!r}; its first is {ids[0]!r}.")
    if live:
        drifts = _asked_live(parts, capsule, as_json)
        if as_json:
            print_json([_drift_figures(drift) for drift in drifts])
        else:
            _print_drifts(drifts, question)
        return
    with clear_stdout(as_json):
        found = replayed(capsule, allow_code=parts.allowed_code)
    figures = [_figures(run) for run in found]
    if as_json:
        print_json(figures)
    else:
        for run, told in zip(found, figures, strict=True):
            more = f", {len(told['skipped'])} not replayed: their time was over" if told["skipped"] else ""
            note = f"  ({SIMULATED})" if run.simulated else ""
            echo(f"{run.name}: {told['same']} of {told['questions']} records are the same{more}{note}")
            for line in _told(run, question):
                echo(line)
    if any(run.differing for run in found):
        raise typer.Exit(1)


def _idle(context: typer.Context) -> str:
    """Return the options that were typed and mean something with --live only."""
    typed = {name for name, value in context.params.items() if value is not None}
    idle = typed & {*RunSettings.model_fields} - {*_OFFLINE}
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(idle))


def _asked_live(parts: "Parts", capsule: Path, as_json: bool) -> "list[Drift]":
    from datetime import datetime

    from ..evaluation.capsule import replay_live
    from .progress import progress_bars

    settings = parts.settings
    parts.use_lm()
    out = settings.out or Path("runs") / f"replay-{capsule.stem}-{datetime.now():%Y%m%d-%H%M%S}"
    with progress_bars(as_json) as bars:
        return replay_live(
            capsule,
            out,
            retriever=parts.retriever if settings.retriever else _bundled(parts, capsule),
            policy=settings.policy,
            seed=settings.seed,
            allow_code=parts.allowed_code,
            on_progress=bars.run,
        )


def _bundled(parts: "Parts", capsule: Path) -> "Retriever | None":
    """Return the bundled tasks' retriever if a run searched with it, which nobody has to name; None otherwise."""
    from ..data import BUNDLED
    from ..evaluation.stored_runs import open_runs

    if parts.settings.task not in BUNDLED:
        return None
    runs = [run for run in open_runs(capsule) if run.identity.get("task") in BUNDLED]
    searched = {facts["fingerprint"] for run in runs if (facts := run.part("retriever"))}
    return parts.retriever if searched and parts.retriever.fingerprint in searched else None


def _print_drifts(drifts: "Sequence[Drift]", question: str | None) -> None:
    """Print for each run the scores then and now, and each answer that differs; or all of one question."""
    from .report import print_paired

    for drift in drifts:
        then, now = drift.models
        print_paired({f"{drift.name}, then: {then}": drift.before, f"now: {now}": drift.after}, drift)
        shown = [one for one in drift.questions if question in (None, one.stored.id)]
        other = [one for one in shown if not one.same]
        echo(f"{len(shown) - len(other)} of {len(shown)} answers are the same")
        for one in other if question is None else shown:
            answers = " → ".join(record.answer or str(record.failure or "–") for record in (one.stored, one.record))
            where = f"; first at {_where(one.first)}" if one.first else ""
            said = f"  {one.stored.id}: {answers}{where}"
            if question and one.first:
                said += f"\n{_indented(one.first.text)}"
            echo(said)


def _drift_figures(drift: "Drift") -> dict[str, Any]:
    """Return a run's figures then and now, and for each question whether its answer is the same, and what differs."""
    asked = {one.stored.id: {"same": one.same, "first difference": one.first} for one in drift.questions}
    return {"run": drift.name, "models": drift.models, **drift.figures(), "questions": asked}


def _figures(run: "ReplayedRun") -> dict[str, Any]:
    """Return what became of a run's questions; of those that differ, everything that does."""
    skipped = {one.stored.id: one.skipped for one in run.questions if one.skipped is not None}
    differing = {one.stored.id: one.differences for one in run.differing}
    same = len(run.questions) - len(differing) - len(skipped)
    told = {"run": run.name, "simulated": run.simulated, "questions": len(run.questions), "same": same}
    return {**told, "differing": differing, "skipped": skipped}


def _told(run: "ReplayedRun", question: str | None) -> Iterable[str]:
    """Yield what differs in a run: each change once, then each question with its first; or all of one question."""
    if question is not None:
        shown = [one for one in run.differing if one.stored.id == question]
        yield from (f"  {_where(one)}\n{_indented(one.text)}" for found in shown for one in found.differences)
        return
    seen: set[tuple[str, str]] = set()
    for one in (difference for found in run.differing for difference in found.differences):
        if (one.by, one.why) not in seen:
            seen.add((one.by, one.why))
            yield f"  {one.by}: {one.why}, for example\n{_indented(one.text)}"
    for found in run.differing:
        yield f"  {found.stored.id}: first at {_where(found.differences[0])}, {len(found.differences)} in all"


def _where(difference: "Difference") -> str:
    step = f"step {difference.number}, " if difference.number else ""
    return f"{step}{difference.by}: {difference.why}"


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
