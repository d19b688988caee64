"""questree ask"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings
from . import options
from .screen import Screen, echo, put, waiting

if TYPE_CHECKING:
    from ..programs import ReasoningTree
    from ..retrieval import Passage

Form = Literal["text", "json", "mermaid", "html"]
Style = Literal["short", "yes-no", "label", "two-label", "long", "list"]


def ask(
    settings: Annotated[RunSettings, "task seed LM LIMITS PARTS CODE tracking_uri"],
    question: str,
    program: str | None = None,
    style: Style = "short",
    form: Annotated[Form, typer.Option("--format")] = "text",
    follow_up: list[str] | None = None,
    as_json: options.AsJson = False,
    set_: options.ProgramSettings = None,
    out: options.Out = None,
) -> None:
    """Answer one question and show how.

    Args:
        question: The question, in your own words.
        program: A program's name, or a compiled one's folder, runs:/…, models:/… or hf://… Default: searchain.
        style: The form of the answer.
        form: What to print: text grows as it is reasoned; html is a page.
        follow_up: What was asked or answered before; repeat it, in order. One more LM call makes the question complete.
    """
    if as_json and form not in ("text", "json"):
        raise QuestreeError(f"--json is --format json; leave --format {form} out, or --json.")
    form = "json" if as_json else form
    with waiting("loading the program, the LM's client and the index"):
        from ..experiment import Experiment
        from ..lm.account import Account
        from ..lm.models import not_known

        experiment = Experiment(settings)
        experiment.use_lm()
        answerer = experiment.program(program or settings.program, **options.named_values(set_, "--set"))
    with Account().open():
        if form == "text" and out is None:
            prediction = ask_live(answerer, question, style, follow_up or ())
        else:
            prediction = answerer(question=question, answer_style=style, history=follow_up or ())
            put(_written(prediction, form, getattr(answerer, "retriever", None)), out)
    if prediction.failure is not None:
        raise QuestreeError(f"no answer ({prediction.failure})")
    if why := not_known(experiment.lm, question):
        way = "Ask one of these, name the task of your index, or another LM: --lm."
        echo(f"{why} What it says of this one means nothing. {way}", err=True)


def ask_live(program: Any, question: str, style: str, history: Sequence[str] = ()) -> Any:
    """Show the tree as it grows, then the answer under it; return the prediction."""
    from rich.live import Live
    from rich.text import Text

    console = Screen()

    def show(tree: "ReasoningTree") -> None:
        live.update(coloured(tree, no_wrap=True, overflow="ellipsis"), refresh=console.is_terminal)

    with Live(console=console, auto_refresh=False, transient=True) as live:
        prediction = program(question=question, answer_style=style, watch=show, history=history)
    console.print(coloured(prediction.tree), soft_wrap=True)
    if prediction.failure is None:
        console.print(Text(f"\n{_answer(prediction)}"), soft_wrap=True)
    return prediction


def coloured(tree: "ReasoningTree", **how: Any) -> Any:
    """Return the tree as text: what a passage says in green, the rest in yellow, and what was given up dim."""
    from rich.text import Text

    from ..programs.tree_views import as_text

    text = Text(as_text(tree), **how)
    for states, style in (
        (r"(?m)\((found in|recalled, confirmed|read, answers).*\)$", "green"),
        (r"(?m)\((corrected|recalled, not|a guess).*\)$", "yellow"),
        (r"(?m)^.*○.*$", "dim"),
    ):
        text.highlight_regex(states, style)
    return text


def _written(prediction: Any, form: Form, retriever: Any) -> str:
    """Return a prediction in a form; a page tells what stands beside the passages of the retriever's documents."""
    import json

    from ..common.text import printable_json
    from ..programs.answer import as_fields
    from ..programs.tree_views import as_mermaid, as_text

    if form == "html":
        from ..pages.question_page import answer_page
        from ..retrieval.documents.indexed import IndexedDocuments

        return answer_page(prediction, simulated=_is_simulated(), documents=IndexedDocuments([retriever]))
    if form == "mermaid":
        return as_mermaid(prediction.tree)
    if form == "json":
        fields = as_fields(prediction) | {"simulated": _is_simulated()}
        return printable_json(json.dumps(fields, ensure_ascii=False, indent=2))
    return f"{as_text(prediction.tree)}\n\n{_answer(prediction)}"


def _answer(prediction: Any) -> str:
    """Return the answer with its references, as lines."""
    from ..programs.basis import standing_of

    stands, simulated = str(standing_of(prediction)), _is_simulated()
    text = answer_text(
        prediction.final_content, prediction.references, prediction.answer or stands, simulated=simulated
    )
    return f"{text}\n{stands}" if prediction.answer else text


def answer_text(content: str, references: Iterable["Passage"], answer: str, *, simulated: bool) -> str:
    """Return a text with marks, each passage with the sentences that support its marks, and the answer."""
    from ..metrics.citations import reference_marks

    cited, marks = [], reference_marks(content)
    for number, passage in enumerate(references, start=1):
        of_passage = [mark for mark in marks if mark.number == number]
        behind = [one for mark in of_passage for one in mark.shown(passage.text, passage.title)]
        told = " … ".join(" ".join(one.split()) for one in dict.fromkeys(behind))
        cited.append(f"[{number}] {passage.cited(told)}")
    return "\n".join([content, *cited, "", f"Answer: {answer}{'  (simulated)' if simulated else ''}"])


def _is_simulated() -> bool:
    import dspy

    from ..lm.models import is_simulated

    return is_simulated(dspy.settings.lm)
