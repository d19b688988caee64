"""questree prompts"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings
from . import options
from .screen import echo, put

if TYPE_CHECKING:
    from ..programs import Program
    from ..programs.prompts import RenderedPrompt


def prompts(
    settings: Annotated[RunSettings, "adapter"],
    program: options.Program = None,
    other: Annotated[str | None, typer.Argument()] = None,
    predictor: str | None = None,
    set_: options.ProgramSettings = None,
    allow_code: list[str] | None = None,
    out: options.Out = None,
    page: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
) -> None:
    """Show the whole prompt of each predictor as it is sent, with its demonstrations; or what differs between two.

    Args:
        other: Another program: show what differs in its prompts, as a diff.
        predictor: Only the predictors whose names hold this. Default: all of them.
        allow_code: A program of another package that the compiled one may name, as package:name; repeat it.
        page: Write an HTML page to this file; two programs side by side.
    """
    options.refuse((out and page, "--page writes a page, and --out a text: leave one of them out"))
    import dspy

    from ..common.files import write_atomically
    from ..lm.guard import adapter_named
    from ..pages.prompts_page import prompts_page
    from ..programs.prompts import differences, rendered_prompts

    program, own = program or settings.program, options.named_values(set_, "--set")
    with dspy.context(adapter=adapter_named(settings.adapter)):
        shown = [
            [one for one in rendered_prompts(_find(name, own, allow_code)) if (predictor or "") in one.predictor]
            for name in (program, other)
            if name is not None
        ]
    if not any(shown):
        raise QuestreeError(f"{program} has no predictor {predictor!r}; leave out --predictor to see all of them.")
    if page is not None:
        title = f"The prompts of {program}" if other is None else f"The prompts of {program} and of {other}"
        write_atomically(page, prompts_page(title, shown[-1], before=None if other is None else shown[0]))
        echo(f"page: {page}")
        return
    text = "\n\n".join(map(_text, shown[0])) if other is None else "\n\n".join(differences(*shown).values())
    put(text or "No prompt differs.", out)


def _find(name: str, settings: dict[str, object], allow_code: list[str] | None) -> "Program":
    """Return the program: a registered one is built without its parts, which no prompt needs."""
    from ..optimize import load
    from ..programs import REGISTRY, allow, build

    if not REGISTRY.means(name):
        compiled = f"{name} is compiled, and has its settings; --set is for uncompiled programs"
        options.refuse((settings, compiled))
        return load(name, allow_code=allow_code or ())
    allow(name, settings)
    return build(name, settings)


def _text(prompt: "RenderedPrompt") -> str:
    count = prompt.demonstrations
    heading = f"{prompt.predictor} ({prompt.signature}): about {prompt.tokens} tokens, {count} demonstrations"
    return f"{heading}\n{'=' * len(heading)}\n{prompt.text}"
