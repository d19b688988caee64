"""questree push"""

from pathlib import Path
from typing import Annotated

import typer

from .screen import echo


def push(
    program: Annotated[Path, typer.Argument(help="The folder of a compiled program.")],
    address: Annotated[str, typer.Argument(metavar="hf://USER/NAME", help="The repository on the hub.")],
    index: Annotated[
        Path | None, typer.Option(help="The index that it was compiled over; the card says how to make it.")
    ] = None,
    capsule: Annotated[
        Path | None, typer.Option(help="A capsule of its runs (questree pack), for others to replay.")
    ] = None,
    license: Annotated[str | None, typer.Option(help="Licence of its demonstrations, such as cc-by-4.0.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Put a compiled program on the Hugging Face hub, with a card made from it. The token is in HF_TOKEN."""
    from ..optimize.card import push as pushed

    place = pushed(program, address, index=index, capsule=capsule, license=license, private=private)
    echo(f"{place}\nask it: questree ask QUESTION --program {place} --retriever INDEX")
