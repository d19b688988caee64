"""The passages that SearChain reads for a node: those read before, the query's, and those of a guess."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..common.text import words_in
from ..metrics import stands_in
from ..retrieval import Passage
from .references import distinct
from .tree import Node, ReasoningTree

_ASKING = re.compile(
    r"wh(?:o|om|ose|at|ich|en|ere)|how|many|much|name|is|are|was|were|do|does|did|an|the|of|in|on|at|to|for|from|by|with"
    r"|and|[a-z]"
)  # words that do not name the subject


def lookups(tree: ReasoningTree, node: Node, search: Callable[[str], list[Passage]]) -> Iterator[list[Passage]]:
    """Yield groups of passages to check a node with; each is for the case that those before do not answer.

    First come passages that were read before and are about the query: if they answer, no search is made. Then come
    passages that the query finds; and for a guess, those that query and guess find together and that name the guess.
    """
    if known := read_before(tree, node.query):
        tree.update(node, read_before=True)
        yield known
        tree.update(node, read_before=False)
    passages = distinct([known, search(node.query)])
    if passages[len(known) :] or not known:
        yield passages[len(known) :]
    if node.answer is not None and not node.sure:
        further = distinct([passages, search(f"{node.query} {node.answer}")])[len(passages) :]
        if naming := [passage for passage in further if stands_in(passage.shown(), node.answer)]:
            yield naming


def read_before(tree: ReasoningTree, query: str) -> list[Passage]:
    """Return the passages of earlier queries whose title the query names, and whose text has its other words."""
    stems = _stems(query)
    return [
        passage
        for passage in tree.passages()
        if passage.title and stands_in(query, passage.title.partition(" (")[0]) and stems <= _stems(passage.shown())
    ]


def _stems(text: str) -> set[str]:
    """Return the words of a text without question words and the like, and without the s of a plural."""
    return {word.removesuffix("s") for word in words_in(text) if not _ASKING.fullmatch(word)}
