"""What `questree show` prints of runs: their scores, a line for each question, a question's tree, or why it failed."""

import logging
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from ..common.errors import QuestreeError
from .screen import table_of

if TYPE_CHECKING:
    from ..evaluation import Evaluation, Record
    from ..evaluation.stored_runs import StoredRun

logger = logging.getLogger(__name__)

Form = Literal["text", "mermaid", "html"]


def record_of(run: "StoredRun", id: str) -> "Record":
    """Return the record of a question, also of one that the last evaluation did not have."""
    found = next((record for record in (*run.records, *run.others) if record.id == id), None)
    if found is None:
        raise QuestreeError(f"{run.place} has no question {id!r}; its first is {run.records[0].id!r}.")
    return found


def show_runs(console: Any, folder: Path, runs: "Sequence[StoredRun]", details: bool) -> None:
    """Print the scores of all runs in a file, and what to type for each."""
    from ..evaluation import Repeats
    from .report import evaluation_table, spread_of

    console.print(evaluation_table(evaluations_of(runs), details=details))
    if (folder / "repeats.json").exists():
        spread = spread_of(Repeats(tuple(run.evaluation for run in runs)))
        console.print(spread, highlight=False, soft_wrap=True)
    console.print(f"each question: questree show {quote(str(runs[0].place))}", soft_wrap=True)
    if (folder / "program").is_dir():
        console.print(f"the program: questree show {quote(f'{folder}/program')}", soft_wrap=True)


def evaluations_of(runs: "Sequence[StoredRun]") -> "dict[str, Evaluation]":
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


def show_run(console: Any, run: "StoredRun", id: str | None, form: Form, why: bool) -> None:
    """Print a line for each question of a run; or one question's tree, or why it failed."""
    if id is None and why:
        raise QuestreeError(f"--why needs a question: questree show {quote(str(run.place))} QUESTION --why")
    if id is None:
        console.print(_table(run))
        return
    found = record_of(run, id)
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
        from ..pages import answer_page

        return answer_page(record, simulated=simulated)
    if form == "mermaid":
        return as_mermaid(tree)
    stands = str(standing_of(record.model_copy(update={"tree": tree})))
    answer = record.answer or stands if record.failure is None else f"none ({record.failure})"
    text = answer_text(record.final_content, record.references, answer, simulated=simulated)
    return f"{as_text(tree)}\n\n{text}\nGold: {record.gold_answer or 'the corpus does not tell it'}"
