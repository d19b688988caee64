"""questree ask"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import options
from .screen import Screen, echo, waiting

if TYPE_CHECKING:
    from ..programs import ReasoningTree
    from ..settings import RunSettings

SETTINGS = (
    *("task", "seed", "lm", "api_base", "temperature", "reply_tokens", "adapter", "retriever", "rerank", "reader"),
    *("duplicates", "defence", "allow_code", "allow_changed_signatures", "tracking_uri", "limits"),
)

Form = Literal["text", "json", "mermaid", "html"]
Style = Literal["short", "yes-no", "label", "two-label", "long"]


def ask(
    settings: "RunSettings",
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    program: Annotated[
        str | None,
        typer.Option(
            help="A program's name, or a compiled one's folder, runs:/…, models:/… or hf://… Default: searchain."
        ),
    ] = None,
    style: Annotated[Style, typer.Option(help="The form of the answer.")] = "short",
    form: Annotated[
        Form, typer.Option("--format", help="What to print: text grows as it is reasoned; html is a page.")
    ] = "text",
    as_json: options.AsJson = False,
    set_: options.ProgramSettings = None,
    out: options.Out = None,
) -> None:
    """Answer one question and show how."""
    from ..common.errors import QuestreeError

    if as_json and form not in ("text", "json"):
        raise QuestreeError(f"--json is --format json; leave --format {form} out, or --json.")
    form = "json" if as_json else form
    with waiting("loading the program, the LM's client and the index"):
        from ..lm.account import Account
        from ..parts import Parts
        from ..simulate import not_known

        parts = Parts(settings)
        parts.use_lm()
        answerer = parts.program(program or settings.program, **options.named_values(set_, "--set"))
    with Account().open():
        if form == "text" and out is None:
            prediction = ask_live(answerer, question, style)
        else:
            prediction = answerer(question=question, answer_style=style)
            options.put(_written(prediction, form), out)
    if prediction.failure is not None:
        raise QuestreeError(f"no answer ({prediction.failure})")
    if why := not_known(parts.lm, question):
        if not prediction.answer:
            raise QuestreeError(f"{why} Ask one of these, or name another LM: --lm.")
        echo(f"This answer may be made up. {why}", err=True)


def ask_live(program: Any, question: str, style: str) -> Any:
    """Show the tree as it grows, then the answer under it; return the prediction."""
    from rich.live import Live
    from rich.text import Text

    from ..programs.tree_views import as_text

    console = Screen()

    def show(tree: "ReasoningTree") -> None:
        text = Text(as_text(tree), no_wrap=True, overflow="ellipsis")
        live.update(text, refresh=console.is_terminal)

    with Live(console=console, auto_refresh=False, transient=True) as live:
        prediction = program(question=question, answer_style=style, watch=show)
    console.print(Text(as_text(prediction.tree)), soft_wrap=True)
    if prediction.failure is None:
        console.print(Text(f"\n{_answer(prediction)}"), soft_wrap=True)
    return prediction


def _written(prediction: Any, form: Form) -> str:
    """Return a prediction in a form."""
    import dspy

    from ..pages.answer_pages import answer_page
    from ..programs.tree_views import as_mermaid, as_text
    from ..simulate import is_simulated

    if form == "html":
        return answer_page(prediction, simulated=is_simulated(dspy.settings.lm))
    if form == "mermaid":
        return as_mermaid(prediction.tree)
    if form == "json":
        return _as_json(prediction)
    return f"{as_text(prediction.tree)}\n\n{_answer(prediction)}"


def _answer(prediction: Any) -> str:
    """Return the answer with its references, as lines."""
    from ..programs.basis import standing_of
    from .report import answer_text

    answer = prediction.answer or "none was found"
    text = answer_text(prediction.final_content, prediction.references, answer, simulated=_is_simulated())
    return f"{text}\n{standing_of(prediction)}"


def _as_json(prediction: Any) -> str:
    import json

    from ..common.text import printable_json
    from ..programs.streams import as_fields

    fields = as_fields(prediction) | {"simulated": _is_simulated()}
    return printable_json(json.dumps(fields, ensure_ascii=False, indent=2))


def _is_simulated() -> bool:
    import dspy

    from ..simulate import is_simulated

    return is_simulated(dspy.settings.lm)
