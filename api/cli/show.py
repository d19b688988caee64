"""questree show"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import options

if TYPE_CHECKING:
    from ..evaluation import Evaluation, Record
    from ..evaluation.stored_runs import StoredRun
    from ..optimize.artifact import Artifact

logger = logging.getLogger(__name__)

Form = Literal["text", "mermaid", "html"]


def show(
    source: Annotated[
        str, typer.Argument(help="An evaluation's folder; or a compiled program's folder, runs:/…, models:/… or hf://…")
    ],
    question: Annotated[
        str | None, typer.Argument(help="The id of a question of the evaluation: show its tree.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="The same as QUESTION.")] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Show why the question failed: program, step, last prompt, last reply.")
    ] = False,
    form: Annotated[Form, typer.Option("--format", help="How to show a tree.")] = "text",
    tracking_uri: Annotated[str | None, typer.Option(help="MLflow's tracking URI, for runs:/… and models:/…")] = None,
    details: options.Details = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print each question's record and steps as a line.")] = False,
) -> None:
    """Show a compiled program, an evaluation, one question's tree; of a comparison or a compilation, its scores."""
    import json
    from io import StringIO

    from ..common.text import printable_json
    from ..evaluation.stored_runs import lines_of
    from .screen import Screen

    asked, tree = question or id, form != "text"
    options.refuse(
        (question and id, "--id is the same as QUESTION: leave one of them out"),
        (why and (tree or as_json), "--why is text: leave --format and --json out"),
        (tree and as_json, "--json is no tree: leave --format out"),
        (jsonl and (asked or why or tree or as_json or out), "--jsonl shows all: leave other options out"),
        (tree and not asked, "--format is of a question's tree: name the question"),
    )
    text = StringIO()
    console = Screen(file=text if out else None)
    runs = _runs(source)
    options.refuse(
        ((asked or why or jsonl) and not runs, f"{source} is no evaluation: it has no questions to show"),
        ((asked or why) and len(runs) > 1 and not as_json, f"{source} holds several runs: name one, or add --json"),
    )
    if jsonl:
        for line in lines_of(Path(source)):
            console.print(printable_json(json.dumps(line, ensure_ascii=False)), highlight=False, soft_wrap=True)
    elif as_json:
        shown = _figures(runs, asked) if runs else _program_figures(source, tracking_uri)
        console.print(printable_json(json.dumps(shown, indent=2)), highlight=False, soft_wrap=True)
    elif len(runs) == 1:
        _show_run(console, runs[0], asked, form, why)
    elif runs:
        _show_runs(console, Path(source), runs, details)
    else:
        _show_program(console, source, tracking_uri)
    if out:
        options.put(text.getvalue().rstrip("\n"), out)


def _runs(source: str) -> list[StoredRun]:
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


def _figures(runs: Sequence[StoredRun], id: str | None) -> Any:
    """Return the figures of each run; or a question's record, of several runs by their names."""
    import json

    if id is None:
        return {name: {**json.loads(one.as_json()), "table": one.table()} for name, one in _evaluations(runs).items()}
    found = {run.name: _record(run, id).model_dump(mode="json") for run in runs}
    return found if len(runs) > 1 else found[runs[0].name]


def _program_figures(source: str, tracking_uri: str | None) -> dict[str, Any]:
    artifact = _artifact(source, tracking_uri)
    counts = {name: len(one.demos) for state in artifact.manifest.state.members for name, one in state.items()}
    return {**artifact.manifest.facts(), "demonstrations": counts}


def _record(run: StoredRun, id: str) -> Record:
    """Return the record of a question, also of one that the last evaluation did not have."""
    from ..common.errors import QuestreeError

    found = next((record for record in (*run.records, *run.others) if record.id == id), None)
    if found is None:
        raise QuestreeError(f"{run.place} has no question {id!r}; its first is {run.records[0].id!r}.")
    return found


def _show_runs(console: Any, folder: Path, runs: Sequence[StoredRun], details: bool) -> None:
    """Print the scores of all runs in a file, and what to type for each."""
    from ..evaluation.repeats import Repeats
    from .report import evaluation_table

    console.print(evaluation_table(_evaluations(runs), details=details))
    if (folder / "repeats.json").exists():
        repeats = Repeats(tuple(run.evaluation for run in runs))
        score = repeats.score
        mean = f"{repeats.runs[0].metric} {score.mean:.3f} [{score.low:.3f}, {score.high:.3f}] over {len(runs)} repeats"
        spread = f"variance within questions {repeats.within:.3f}, between {repeats.between:.3f}"
        console.print(f"{mean}; {spread}", highlight=False, soft_wrap=True)
    console.print(f"each question: questree show {quote(str(runs[0].place))}", soft_wrap=True)
    if (folder / "program").is_dir():
        console.print(f"the program: questree show {quote(f'{folder}/program')}", soft_wrap=True)


def _evaluations(runs: Sequence[StoredRun]) -> dict[str, Evaluation]:
    """Return the evaluations by the name of the run, and say of which runs no answer is scored yet."""
    from ..common.errors import QuestreeError

    found: dict[str, Evaluation] = {}
    for run in runs:
        try:
            found[run.name] = run.evaluation
        except QuestreeError as error:
            if len(runs) == 1:
                raise
            logger.warning("%s", error)
    if not found:
        raise QuestreeError("No answer of these runs is scored yet; run the same again.")
    return found


def _show_run(console: Any, run: StoredRun, id: str | None, form: Form, why: bool) -> None:
    from ..common.errors import QuestreeError

    if id is None:
        if why:
            raise QuestreeError(f"--why needs a question: questree show {quote(str(run.place))} QUESTION --why")
        console.print(_table(run.records, width=console.width, simulated=run.simulated))
        return
    found = _record(run, id)
    text = _why(found) if why else _tree(found, form, simulated=run.simulated)
    console.print(text, highlight=False, soft_wrap=True)


def _table(records: Sequence[Record], *, width: int, simulated: bool) -> Any:
    """Return a line for each question: as many columns as the screen has room for, the texts always."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from .report import SIMULATED

    metrics = list(dict.fromkeys(name for record in records for name in record.scores))
    shown = [
        {
            "id": record.id,
            "question": record.question,
            "answer": record.answer,
            "gold": next(iter(record.answers), ""),
            **{one: f"{record.scores[one]:.2f}" if one in record.scores else "–" for one in metrics},
            "calls": str(record.spent.calls),
            "failure": "" if record.failure is None else record.failure.cause,
        }
        for record in records
    ]
    widths = {name: max(len(name), *(len(line[name]) for line in shown)) for name in shown[0]}
    texts = {"question": 3, "answer": 2, "gold": 2}  # shares of the width that the other columns leave
    # whoever reads an id wants to type it: only texts are broken
    wanted = [
        "id",
        metrics[0] if metrics else "calls",
        *(["failure"] if any(line["failure"] for line in shown) else []),
    ]
    for one in (*metrics[1:], "calls"):  # the further ones where the texts keep half a wide screen
        if one not in wanted and sum(widths[name] + 2 for name in [*wanted, one]) <= width - max(60, width // 2):
            wanted.append(one)
    table = Table(title=SIMULATED if simulated else None, box=SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1))
    columns = ["id", *texts, *wanted[1:]]
    for name in columns:
        table.add_column(name, no_wrap=name not in texts, overflow="fold", ratio=texts.get(name))
    for line in shown:
        table.add_row(*(Text(line[name]) for name in columns))
    return table


def _why(record: Record) -> str:
    """Return where a question failed, and the last prompt and reply."""
    failure = record.failure
    if failure is None:
        return f"{record.id} was answered: {record.answer}"
    what = f"{record.id}: {record.question}\n{failure}"
    where = failure.where
    if where is None:  # a capsule without texts has none
        return what
    place = f"program: {where.program}\nstep: {where.step or '–'}\npredictor: {where.predictor or '–'}"
    texts = [f"--- {name} ---\n{text}" for name, text in (("prompt", where.prompt), ("reply", where.reply)) if text]
    return "\n\n".join([f"{what}\n{place}", *texts])


def _tree(record: Record, form: Form, *, simulated: bool) -> str:
    """Return a question's tree in a form."""
    from ..programs import ReasoningTree
    from ..programs.tree_views import as_mermaid, as_text
    from .report import answer_text

    tree = record.tree or ReasoningTree(question=record.question)  # a fault in a program leaves none
    if form == "html":
        from ..pages.answer_pages import answer_page

        return answer_page(record, simulated=simulated)
    if form == "mermaid":
        return as_mermaid(tree)
    answer = record.answer or "none was found" if record.failure is None else f"none ({record.failure})"
    return f"{as_text(tree)}\n\n{answer_text(record.final_content, record.references, answer, simulated=simulated)}"


def _show_program(console: Any, source: str, tracking_uri: str | None) -> None:
    """Print a compiled program's manifest, and how many demonstrations each of its predictors has."""
    import json

    from rich.text import Text

    from ..common.text import printable_json

    artifact = _artifact(source, tracking_uri)
    facts = json.dumps(artifact.manifest.facts(), indent=2, ensure_ascii=False)
    console.print(printable_json(facts), soft_wrap=True)
    for state in artifact.manifest.state.members:
        for name, predictor in state.items():
            console.print(Text(f"{name}: {len(predictor.demos)} demonstrations"))


def _artifact(source: str, tracking_uri: str | None) -> Artifact:
    from ..optimize.artifact import read_artifact

    if tracking_uri:
        import mlflow

        mlflow.set_tracking_uri(tracking_uri)
    return read_artifact(source)
