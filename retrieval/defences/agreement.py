"""A defence against planted passages that costs no LM call: what only repeats the question, or others, is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from ..contracts import Retriever
from ..passage import Passage
from .filtering import FilteringRetriever

_FEWEST_WORDS = 4
_ALIKE = 0.6
_ASKED: ContextVar[tuple[str, ...]] = ContextVar("asked", default=())
_QUESTIONS = re.compile(r"[^.!?]+\?")


class AgreementRetriever(FilteringRetriever):
    """Another retriever's passages, without those that look planted for the query; the next best take their places.

    Two rules. A passage that holds the query, or the question that is being answered, word for word is left out: that
    is how PoisonedRAG makes its texts be found (Zou et al., USENIX Security 2025: S is the question itself). Of
    passages that say nearly the same (Jaccard of their words above .6) only the best ranked stays, so that repeating a
    claim makes it no stronger (the paper looks at duplicates too). It knows nothing else: a planted passage that puts
    the question into other words, or an instruction inside a genuine passage, goes through.

    Args:
        retriever: finds the passages.
    """

    def __init__(self, retriever: Retriever) -> None:
        super().__init__(retriever, f"{retriever.name} with agreement", "agreement 1")

    def kept(self, queries: list[str], found: list[list[Passage]]) -> list[list[Passage]]:
        """Those that are `trusted`."""
        asked = _ASKED.get()
        return [trusted([query, *asked], passages) for query, passages in zip(queries, found, strict=True)]


@contextmanager
def asking(question: str) -> Iterator[None]:
    """Within it, and in the threads that its context is copied to, this is the question that searches are made for."""
    token = _ASKED.set((question,))
    try:
        yield
    finally:
        _ASKED.reset(token)


def trusted(texts: Sequence[str], passages: Sequence[Passage]) -> list[Passage]:
    """The passages that neither hold a question of the texts nor repeat a better passage, in their order."""
    questions = [one for text in texts for one in _QUESTIONS.findall(text) or [text]]
    asked = [words for one in questions if len(words := _words(one)) >= _FEWEST_WORDS]
    kept: list[Passage] = []
    kept_words: list[frozenset[str]] = []
    for passage in passages:
        words = _words(f"{passage.title} {passage.text}")
        line, distinct = f" {' '.join(words)} ", frozenset(words)
        if any(f" {' '.join(one)} " in line for one in asked):
            continue
        if not any(_jaccard(distinct, other) > _ALIKE for other in kept_words):
            kept.append(passage)
            kept_words.append(distinct)
    return kept


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
