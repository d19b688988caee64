"""questree show"""

import json
import logging
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..common.errors import QuestreeError
from . import options
from .screen import Screen, put, table_of

if TYPE_CHECKING:
    from ..evaluation import Evaluation, Record
    from ..evaluation.stored_runs import StoredRun
    from ..optimize.artifact import Manifest

logger = logging.getLogger(__name__)

Form = Literal["text", "mermaid", "html"]


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
        _show_run(console, runs[0], question, form, why)
    else:
        _show_runs(console, Path(source), runs, details)
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
        return {name: {**json.loads(one.as_json()), "table": one.table()} for name, one in _evaluations(runs).items()}
    found = {run.name: _record(run, id).model_dump(mode="json") for run in runs}
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

    from ..optimize.card import described, rewritten

    told = ", ".join(f"{count} of {name}" for name, count in _demonstrations(manifest).items() if count)
    try:
        changed = rewritten(manifest)
        of = ", ".join(changed) or "none"
    except QuestreeError as error:
        changed, of = {}, f"not known: {error}"
    rows = described(manifest) | {"demonstrations": told or "none"}
    grid = Table.grid(padding=(0, 2))
    for name, text in (rows | {"instructions that changed": of}).items():
        grid.add_row(Text(name), Text(text, overflow="fold"))
    console.print(grid)
    for name, text in changed.items():
        console.print(f"\ninstructions of {name}:\n{text}", highlight=False)
    console.print(f"\neach prompt: questree prompts {quote(source)}", highlight=False, soft_wrap=True)


def _record(run: "StoredRun", id: str) -> "Record":
    """Return the record of a question, also of one that the last evaluation did not have."""
    found = next((record for record in (*run.records, *run.others) if record.id == id), None)
    if found is None:
        raise QuestreeError(f"{run.place} has no question {id!r}; its first is {run.records[0].id!r}.")
    return found


def _show_runs(console: Any, folder: Path, runs: "Sequence[StoredRun]", details: bool) -> None:
    """Print the scores of all runs in a file, and what to type for each."""
    from ..evaluation.repeats import Repeats
    from .report import evaluation_table, spread_of

    console.print(evaluation_table(_evaluations(runs), details=details))
    if (folder / "repeats.json").exists():
        spread = spread_of(Repeats(tuple(run.evaluation for run in runs)))
        console.print(spread, highlight=False, soft_wrap=True)
    console.print(f"each question: questree show {quote(str(runs[0].place))}", soft_wrap=True)
    if (folder / "program").is_dir():
        console.print(f"the program: questree show {quote(f'{folder}/program')}", soft_wrap=True)


def _evaluations(runs: "Sequence[StoredRun]") -> "dict[str, Evaluation]":
    """Return the evaluations by the name of the run, and say of which runs no answer is scored yet."""
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


def _show_run(console: Any, run: "StoredRun", id: str | None, form: Form, why: bool) -> None:
    if id is None and why:
        raise QuestreeError(f"--why needs a question: questree show {quote(str(run.place))} QUESTION --why")
    if id is None:
        console.print(_table(run))
        return
    found = _record(run, id)
    text = _why(found) if why else _tree(found, form, simulated=run.simulated)
    console.print(text, highlight=False, soft_wrap=True)


def _table(run: "StoredRun") -> Any:
    """Return a line for each question. Whoever reads an id wants to type it: only texts are broken."""
    from ..evaluation.tables import warning_of

    records, lines = run.records, []
    metric = next((name for record in records for name in record.scores), "score")
    said = warning_of(run.simulated, any(record.self_written for record in records))
    for record in records:
        line = {"id": record.id, "question": record.question, "answer": record.answer}
        line |= {"gold": record.gold_answer, metric: "–"}
        line |= {metric: f"{record.scores[metric]:.2f}"} if metric in record.scores else {}
        lines.append(line | {"failure": "" if record.failure is None else record.failure.cause})
    texts = {"question": 3, "answer": 2, "gold": 2}  # shares of the width that the other columns leave
    shown = [name for name in lines[0] if name != "failure" or any(line["failure"] for line in lines)]
    columns = {name: {"no_wrap": name not in texts, "ratio": texts.get(name)} for name in shown}
    return table_of(lines, columns, said, expand=True, pad_edge=False, padding=(0, 1))


def _why(record: "Record") -> str:
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


def _tree(record: "Record", form: Form, *, simulated: bool) -> str:
    """Return a question's tree in a form."""
    from ..programs import ReasoningTree
    from ..programs.basis import standing_of
    from ..programs.tree_views import as_mermaid, as_text
    from .ask import answer_text

    tree = record.tree or ReasoningTree(question=record.question)  # a fault in a program leaves none
    if form == "html":
        from ..pages.question_page import answer_page

        return answer_page(record, simulated=simulated)
    if form == "mermaid":
        return as_mermaid(tree)
    stands = str(standing_of(record.model_copy(update={"tree": tree})))
    answer = record.answer or stands if record.failure is None else f"none ({record.failure})"
    text = answer_text(record.final_content, record.references, answer, simulated=simulated)
    return f"{as_text(tree)}\n\n{text}\nGold: {record.gold_answer or 'the corpus does not tell it'}"
