"""questree ask"""

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..programs import ReasoningTree
    from ..settings import RunSettings


SETTINGS = (
    *("task", "seed", "lm", "api_base", "reply_tokens", "retriever", "reader", "duplicates", "defence"),
    *("tracking_uri", "limits"),
)


class Form(str, Enum):
    """What to print."""

    text = "text"
    json = "json"
    mermaid = "mermaid"
    html = "html"


class Style(str, Enum):
    """The form of the answer."""

    short = "short"
    yes_no = "yes-no"
    label = "label"
    long = "long"


def ask(
    settings: "RunSettings",
    question: Annotated[str, typer.Argument(help="In your own words.")],
    program: Annotated[str, typer.Option(help="A program's name, a compiled one's folder, runs:/… or models:/…")] = (
        "searchain"
    ),
    style: Annotated[Style, typer.Option(help="The form of the answer.")] = Style.short,
    form: Annotated[Form, typer.Option("--format", help="text grows as it is reasoned; html is a page.")] = Form.text,
    set_: options.ProgramSettings = None,
    out: Annotated[typer.FileTextWrite | None, typer.Option(help="Write to this file instead of the screen.")] = None,
) -> None:
    """Answer one question and show how."""
    from ..parts import Parts

    parts = Parts(settings)
    parts.use_lm()
    answerer = parts.program(program, **options.named_values(set_, "--set"))
    if form is Form.text and out is None:
        prediction = ask_live(answerer, question, style.value)
    else:
        prediction = answerer(question=question, answer_style=style.value)
        typer.echo(_printed(prediction, form), file=out)
    if prediction.failure is not None:
        from ..common.errors import QuestreeError

        raise QuestreeError(f"no answer ({prediction.failure})")


def ask_live(program: Any, question: str, style: str) -> Any:
    """Show the tree as it grows, then the answer under it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from ..programs.tree_views import as_text

    console = Console()

    def shown(tree: "ReasoningTree") -> Text:
        return Text(as_text(tree), no_wrap=True, overflow="ellipsis")

    with Live(console=console, auto_refresh=False, transient=True) as live:
        prediction = program(
            question=question,
            answer_style=style,
            watch=lambda tree: live.update(shown(tree), refresh=console.is_terminal),
        )
    console.print(Text(as_text(prediction.tree)), soft_wrap=True)
    if prediction.failure is None:
        console.print(Text(f"\n{_told(prediction)}"), soft_wrap=True)
    return prediction


def _printed(prediction: Any, form: Form) -> str:
    from ..programs.tree_views import as_html, as_mermaid, as_text

    if form is Form.html:
        cited = [passage.cited() for passage in prediction.references]
        return as_html(prediction.tree, prediction.answer, prediction.final_content, cited)
    if form is Form.mermaid:
        return as_mermaid(prediction.tree)
    if form is Form.json:
        return _as_json(prediction)
    return f"{as_text(prediction.tree)}\n\n{_told(prediction)}"


def _told(prediction: Any) -> str:
    from ..common.text import printable

    references = [f"[{n}] {passage.cited()}" for n, passage in enumerate(prediction.references, start=1)]
    simulated = "  (simulated)" if _is_simulated() else ""
    lines = [prediction.final_content, *references, "", f"Answer: {prediction.answer}{simulated}"]
    return printable("\n".join(lines))


def _as_json(prediction: Any) -> str:
    import json

    from ..common.text import printable_json

    told = json.dumps(
        {
            "answer": prediction.answer,
            "final_content": prediction.final_content,
            "references": [passage.model_dump() for passage in prediction.references],
            "tree": prediction.tree.model_dump(),
            "failure": None if prediction.failure is None else prediction.failure.model_dump(),
            "spent": prediction.spent.model_dump(),
            "seconds": prediction.seconds,
            "simulated": _is_simulated(),
        },
        ensure_ascii=False,
        indent=2,
    )
    return printable_json(told)


def _is_simulated() -> bool:
    import dspy

    from ..simulate import is_simulated

    return is_simulated(dspy.settings.lm)
