"""Defences against planted passages, by name: more is found than is asked for, and what looks planted is left out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial

from ..common.errors import QuestreeError, unknown_name
from ..common.text import words_in
from .base import WrappingRetriever
from .contracts import Reader, Retriever, asked_question
from .passage import Passage

DEFENCES = {
    "none": "every passage that is found",
    "agreement": "without passages that repeat the question word for word, or one another",
    "reader": "without passages in which a trained reader finds no answer",
}
_FURTHER = 10
_FEWEST_WORDS = 4
_ALIKE = 0.6
_SIGNS = " \n.,:;!–—-()[]\"'“”‘’。、：；「」"
_QUESTIONS = re.compile(
    r"[^.!?。！？]+[?？]"
    r"|^\W*(?:in |of |on |at |to |for |by |from |with )?"  # without a question mark, as people type them
    r"(?:who|whom|whose|what|which|where|when|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will)\b.*",
    re.IGNORECASE | re.DOTALL,
)


def defended(retriever: Retriever, defence: str, reader: Reader | None = None) -> Retriever:
    """Return the retriever with a defence around it.

    Args:
        defence: one of `DEFENCES`.
        reader: for the defence by a reader, with the threshold that it was calibrated to.
    """
    if defence not in DEFENCES:
        raise QuestreeError(unknown_name("defence", defence, DEFENCES))
    if defence == "agreement":
        return FilteringRetriever(retriever, "with agreement", "agreement 2", agreeing)
    if defence == "reader":
        if reader is None or reader.name == "lm":
            raise QuestreeError(
                "The defence by a reader costs no LM call where a trained one reads: name it "
                "(--reader facebook/dpr-reader-multiset-base)."
            )
        trained = getattr(reader, "fingerprint", "")  # one that is trained further keeps its folder
        rule = f"relevance 1 {reader.name} {reader.threshold}" + (f" {trained}" if trained else "")
        return FilteringRetriever(retriever, "with a reader's consent", rule, partial(answering, reader))
    return retriever


class FilteringRetriever(WrappingRetriever):
    """Another retriever's passages, without some; the next best take their places.

    Args:
        how: the retriever's name goes on so.
        rule: what the choice depends on; another rule gives another fingerprint.
        kept: returns those of the passages found for each query that stay, in their order.
    """

    def __init__(
        self,
        retriever: Retriever,
        how: str,
        rule: str,
        kept: Callable[[list[str], list[list[Passage]]], list[list[Passage]]],
    ) -> None:
        fingerprint = hashlib.sha256(f"{rule} {retriever.fingerprint}".encode()).hexdigest()[:16]
        super().__init__([retriever], f"{retriever.name} {how}", fingerprint)
        self._kept = kept

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return at most k passages for each query, best first."""
        found = self.members[0].batch(queries, k + _FURTHER if k > 0 else k)
        return [passages[:k] for passages in self._kept(queries, found)]


def agreeing(queries: list[str], found: list[list[Passage]]) -> list[list[Passage]]:
    """Return the passages of each query that do not look planted for it.

    Two rules. A passage that holds the query, or the question that is being answered, word for word is left out:
    PoisonedRAG makes its texts be found that way (Zou et al., USENIX Security 2025: S is the question itself). A
    claim or a name, which genuine passages hold as well, has to stand there as it does in those texts: at the
    beginning, and before another sentence. Of passages that say nearly the same (Jaccard of their words above .6)
    only the best ranked stays, so that repeating a claim makes it no stronger (the paper looks at duplicates too).
    Nothing else is noticed: a planted passage that puts the question into other words, or an instruction inside a
    genuine passage, stays.
    """
    question = asked_question()
    asked = [] if question is None else [question]
    return [trusted([query, *asked], passages) for query, passages in zip(queries, found, strict=True)]


def answering(reader: Reader, queries: list[str], found: list[list[Passage]]) -> list[list[Passage]]:
    """Return the passages of each query that a reader scores at its threshold or above.

    A planted passage is made to be found, and argues; whether it answers the query is another question, and a reader
    was trained on that one. Genuine passages that lead to the answer without holding it are left out as well: a
    program that asks one fact at a time loses less by that than one that searches with the whole question.
    """
    pairs = [(query, passage) for query, passages in zip(queries, found, strict=True) for passage in passages]
    spans = iter([reader(*pair) for pair in pairs] if reader.read_many is None else reader.read_many(pairs))
    return [[passage for passage in passages if next(spans).score >= reader.threshold] for passages in found]


def trusted(texts: Sequence[str], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that neither repeat what the texts ask nor a better passage, in their order."""
    questions = [_QUESTIONS.findall(text) for text in texts]
    asked = [words for found in questions for one in found if len(words := words_in(one)) >= _FEWEST_WORDS]
    claims = [
        text for text, found in zip(texts, questions, strict=True) if not found and len(words_in(text)) >= _FEWEST_WORDS
    ]
    kept: list[Passage] = []
    kept_words: list[frozenset[str]] = []
    for passage in passages:
        words = words_in(f"{passage.title} {passage.text}")
        line, distinct = f" {' '.join(words)} ", frozenset(words)
        if any(f" {' '.join(one)} " in line for one in asked) or any(_opens(passage.text, one) for one in claims):
            continue
        if not any(_jaccard(distinct, other) > _ALIKE for other in kept_words):
            kept.append(passage)
            kept_words.append(distinct)
    return kept


def _opens(text: str, claim: str) -> bool:
    """Return whether a text begins with a claim and goes on with what is not the rest of its sentence."""
    begun, said = text.lstrip(_SIGNS), claim.strip(_SIGNS)
    after = begun[len(said) :].lstrip(_SIGNS)
    return begun[: len(said)].casefold() == said.casefold() and after[:1].isalpha() and not after[0].islower()


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
