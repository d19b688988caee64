"""questree show"""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..common.errors import QuestreeError
from . import options
from .run_views import Form, evaluations_of, record_of, show_run, show_runs
from .screen import Screen, put

if TYPE_CHECKING:
    from ..evaluation.stored_runs import StoredRun
    from ..optimize.artifact import Manifest


def show(
    source: str,
    question: Annotated[str | None, typer.Argument()] = None,
    why: bool = False,
    form: Annotated[Form, typer.Option("--format")] = "text",
    tracking_uri: str | None = None,
    details: options.Details = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
    jsonl: bool = False,
) -> None:
    """Show a compiled program, an evaluation, one question's tree; of a comparison or a compilation, its scores.

    Args:
        source: An evaluation's folder; or a compiled program's folder, runs:/…, models:/… or hf://…
        question: The id of a question of the evaluation: show its tree.
        why: Show why the question failed: program, step, last prompt, last reply.
        form: How to show a tree.
        tracking_uri: MLflow's tracking URI, for runs:/… and models:/…
        jsonl: Print each question's record and steps as a line.
    """
    from ..common.text import printable_json
    from ..evaluation.stored_runs import lines_of

    tree = form != "text"
    options.refuse(
        (why and (tree or as_json), "--why is text: leave --format and --json out"),
        (tree and as_json, "--json is no tree: leave --format out"),
        (jsonl and (question or why or tree or as_json or out), "--jsonl shows all: leave other options out"),
        (tree and not question, "--format is of a question's tree: name the question"),
    )
    text = StringIO()
    console = Screen(file=text if out else None)
    runs = _runs(source)
    several, named = (question or why) and len(runs) > 1 and not as_json, ", ".join(run.name for run in runs)
    options.refuse(
        ((question or why or jsonl) and not runs, f"{source} is no evaluation: it has no questions to show"),
        (several, f"{source} holds several runs ({named}): name one, as {source}/NAME, or add --json"),
    )
    manifest = None if runs else _manifest(source, tracking_uri)
    if jsonl:
        for line in lines_of(Path(source)):
            console.print(printable_json(json.dumps(line, ensure_ascii=False)), highlight=False, soft_wrap=True)
    elif as_json:
        told = (
            manifest.facts() | {"demonstrations": _demonstrations(manifest)} if manifest else _figures(runs, question)
        )
        text_of = printable_json(json.dumps(told, indent=2, ensure_ascii=False))
        console.print(text_of, highlight=False, soft_wrap=True)
    elif manifest is not None:
        _show_program(console, source, manifest)
    elif len(runs) == 1:
        show_run(console, runs[0], question, form, why)
    else:
        show_runs(console, Path(source), runs, details)
    if out:
        put(text.getvalue().rstrip("\n"), out)


def _runs(source: str) -> "list[StoredRun]":
    """Return the runs that are meant; none if it is a program."""
    from ..evaluation.run_file import RunFileError, find
    from ..evaluation.stored_runs import stored_runs
    from ..optimize.artifact import MANIFEST

    place = Path(source)
    if source.startswith(("runs:/", "models:/", "hf://")) or (place / MANIFEST).exists():
        return []
    try:
        find(place)
    except RunFileError:
        if place.is_dir() and any(place.iterdir()):
            raise
        return []
    return stored_runs([place])


def _figures(runs: "Sequence[StoredRun]", id: str | None) -> Any:
    """Return the figures of each run; or a question's record, of several runs by their names."""
    if id is None:
        return {name: {**json.loads(one.as_json()), "table": one.table()} for name, one in evaluations_of(runs).items()}
    found = {run.name: record_of(run, id).model_dump(mode="json") for run in runs}
    return found if len(runs) > 1 else found[runs[0].name]


def _manifest(source: str, tracking_uri: str | None) -> "Manifest":
    """Return what a compiled program says of itself."""
    from ..optimize.artifact import read_artifact

    if tracking_uri:
        import mlflow

        mlflow.set_tracking_uri(tracking_uri)
    return read_artifact(source).manifest


def _demonstrations(manifest: "Manifest") -> dict[str, int]:
    """Return how many demonstrations each predictor has, in all members."""
    first, *_ = members = manifest.state.members
    return {name: sum(len(one[name].demos) for one in members if name in one) for name in first}


def _show_program(console: Any, source: str, manifest: "Manifest") -> None:
    """Print what a program was compiled from, how it scored, and what compiling changed."""
    from rich.table import Table
    from rich.text import Text

    from ..optimize.card import card_rows, rewritten

    told = ", ".join(f"{count} of {name}" for name, count in _demonstrations(manifest).items() if count)
    try:
        changed = rewritten(manifest)
        of = ", ".join(changed) or "none"
    except QuestreeError as error:
        changed, of = {}, f"not known: {error}"
    rows = card_rows(manifest) | {"demonstrations": told or "none"}
    grid = Table.grid(padding=(0, 2))
    for name, text in (rows | {"instructions that changed": of}).items():
        grid.add_row(Text(name), Text(text, overflow="fold"))
    console.print(grid)
    for name, text in changed.items():
        console.print(f"\ninstructions of {name}:\n{text}", highlight=False)
    console.print(f"\neach prompt: questree prompts {quote(source)}", highlight=False, soft_wrap=True)
