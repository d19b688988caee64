"""questree push"""

from pathlib import Path
from typing import Annotated

import typer

from .screen import echo


def push(
    program: Path,
    address: Annotated[str, typer.Argument(metavar="hf://USER/NAME")],
    index: Path | None = None,
    capsule: Path | None = None,
    license: str | None = None,
    private: bool = False,
) -> None:
    """Put a compiled program on the Hugging Face hub, with a card made from it. The token is in HF_TOKEN.

    Args:
        program: The folder of a compiled program.
        address: The repository on the hub.
        index: The index that it was compiled over; the card says how to make it.
        capsule: A capsule of its runs (questree pack), for others to replay.
        license: Licence of its demonstrations, such as cc-by-4.0.
        private: Make a new repository private.
    """
    from ..optimize.card import push as pushed

    place = pushed(program, address, index=index, capsule=capsule, license=license, private=private)
    echo(f"{place}\nask it: questree ask QUESTION --program {place} --retriever INDEX")
