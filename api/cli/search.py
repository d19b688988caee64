"""questree search"""

from typing import Annotated, Any

import typer

from ..settings import RunSettings
from . import options
from .screen import echo, print_json


def search(
    query: str,
    settings: Annotated[RunSettings, "retriever"],
    k: Annotated[int, typer.Option("--k", min=1)] = 5,
    as_json: options.AsJson = False,
) -> None:
    """Find the passages of a query, each with where it stands and the sentence that matches. No LM is asked.

    Args:
        query: What to search for.
        k: Passages to show.
    """
    from ..common.sentences import sentences
    from ..metrics.claims import best_sentence
    from ..retrieval import open_retriever

    options.refuse((not settings.retriever, "name what is searched: --retriever INDEX"))
    found: list[dict[str, Any]] = []
    for passage in open_retriever(str(settings.retriever))(query, k):
        told = sentences(passage.text)
        best = best_sentence(query, told)
        sentence = None if best is None else told[best]
        found.append(passage.model_dump() | {"sentence": sentence})
    if as_json:
        print_json(found)
        return
    for rank, one in enumerate(found, 1):
        echo(f"{rank}. {one['title'] or one['id']} ({one['source'] or one['id']}), {one['score']:.3f}")
        echo(f"   {' '.join((one['sentence'] or one['text']).split())}")
    if not found:
        echo("No passage holds a word of the query.")
