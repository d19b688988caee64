"""questree review"""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..common.errors import QuestreeError, needs_extra
from . import options
from .screen import echo


def review(
    file: Path,
    terminal: Annotated[bool, typer.Option("--terminal")] = False,
    port: options.Port = 8081,
) -> None:
    """Keep, mend or drop each question of a file; what is not dropped is the task.

    Each decision is written at once. The page is for this machine alone, and needs nothing but its keyboard.

    Args:
        file: File of questions, in JSON lines.
        terminal: Ask here instead of on a page.
    """
    from ..data.question_files import raw_rows

    if file.suffix != ".jsonl":
        raise QuestreeError(f"{file}: a review is written as JSON lines; give a file whose name ends with .jsonl.")
    if not raw_rows(file):
        raise QuestreeError(f"{file} holds no questions.")
    if terminal:
        _ask_each(file)
        return
    with needs_extra("serve"):
        from ..retrieval.serving.listener import serve_app
        from ..service.review_pages import create_review
    serve_app(create_review(file), "127.0.0.1", port, ready=lambda at: echo(f"{file} at {at}; Ctrl-C ends it"))


def _ask_each(file: Path) -> None:
    """Ask what to do with each question that nobody has decided on yet."""
    from ..data.question_files import raw_rows
    from ..data.review import answer_lines, decide, is_open

    rows = raw_rows(file)
    for number, row in enumerate(rows, start=1):
        if not is_open(row):
            continue
        _show(row, f"{number} of {len(rows)}")
        words: dict[str, Any] = {"question": row["question"], "answers": answer_lines(row), "note": row.get("note", "")}
        while (said := typer.prompt("keep, mend, drop, note or quit (k/m/d/n/q)")[:1]) not in ("k", "d", "q"):
            if said == "m":
                words["question"] = typer.prompt("question", default=words["question"])
                words["answers"] = typer.prompt("answers, by ;", default="; ".join(words["answers"])).split(";")
            elif said == "n":
                words["note"] = typer.prompt("note", default=words["note"])
        if said == "q":
            return
        decide(file, row["id"], "drop" if said == "d" else "keep", **words)


def _show(row: dict[str, Any], place: str) -> None:
    answer = "; ".join(map(str, row["answers"])) or "the corpus does not tell it"
    echo(f"\n{place}: {row['question']}\n  answer: {answer}")
    for step, quote in zip(row.get("steps") or [], [*(row.get("quotes") or []), *[""] * 100], strict=False):
        echo(f"  {step['question']} {step.get('answer') or '–'}\n    {step.get('support_title') or ''}: “{quote}”")
