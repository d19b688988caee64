"""The LM as reranker, in place of a cross-encoder: it puts lists of passages into order."""

from __future__ import annotations

import hashlib
import re

import dspy

from ...lm.call import call
from ...retrieval import Passage, Retriever
from ...retrieval.base import WrappingRetriever, check_search
from ...signatures.reader import RankPassages
from ..references import numbered

CANDIDATES, WINDOW, STEP = 50, 20, 10
_NONE = re.compile(r"\W*none\b", re.IGNORECASE)


class LMRerankedRetriever(WrappingRetriever):
    """Another retriever's best passages, in the order of the LM (RankGPT: Sun et al., EMNLP 2023, arXiv 2304.09542).

    The LM is shown ``WINDOW`` passages and writes their numbers, the best first (permutation generation, section 3.1).
    The window begins at the end of the list and moves up by ``STEP``, so that good passages move up with it (section
    3.2). The paper ranks 100 passages in this way; here it is 50, four calls a search. Numbers that no passage has, and
    repeated ones, are ignored. Passages that the LM does not name follow the others in their former order, so that an
    unusable reply changes nothing.

    A score is 1 / rank. The calls are part of the search: they count in what a question costs, and a replay takes the
    search as a whole.

    Args:
        retriever: finds the candidates.
        candidates: passages that are ranked for each query; as many as are asked for, if those are more.
    """

    def __init__(self, retriever: Retriever, candidates: int = CANDIDATES):
        self.candidates, self.rank = candidates, dspy.Predict(RankPassages)
        prompt = self.rank.dump_state()["signature"]
        rule = f"listwise 1 {candidates} {WINDOW} {STEP} {prompt} {retriever.fingerprint}"
        fingerprint = hashlib.sha256(rule.encode()).hexdigest()[:16]
        super().__init__([retriever], f"{retriever.name} reranked by the LM", fingerprint)

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        """Return one list of passages for each query, best first.

        Raises:
            QueryError: if a query is empty, or k is not positive.
            CallFailedError: if the LM cannot be asked.
        """
        checked = check_search(queries, k)
        found = self.members[0].batch(checked, max(k, self.candidates))
        return [self._ranked(query, passages)[:k] for query, passages in zip(checked, found, strict=True)]

    def _ranked(self, query: str, passages: list[Passage]) -> list[Passage]:
        """Return the passages in their new order, window by window, the last one first."""
        for start in window_starts(len(passages)):
            shown = passages[start : start + WINDOW]
            with dspy.context(trace=None):
                reply = call(self.rank, query=query, passages=numbered(shown))
            passages = [*passages[:start], *in_order(shown, reply.ranking), *passages[start + WINDOW :]]
        return [one.model_copy(update={"score": 1 / rank}) for rank, one in enumerate(passages, start=1)]


def window_starts(count: int) -> list[int]:
    """Return the starts of the windows over this number of passages, in the order of ranking; the last is 0."""
    if count < 2:
        return []
    return [*range(count - WINDOW, 0, -STEP), 0]


def in_order(passages: list[Passage], ranking: str) -> list[Passage]:
    """Return the passages in the order of their numbers in a text; those that it does not name come last.

    Some numbers in it are not those of passages: "1. [3]", or "none of the 20".
    """
    named = re.sub(r"(?m)^\s*\d{1,2}[.)](?=.*\d)", "", ranking)  # a list's own numbers
    found = re.findall(r"\[(\d{1,9})\]", named) or re.findall(r"\d{1,9}", "" if _NONE.match(ranking) else named)
    numbers = [int(digits) for digits in found]
    order = [number for number in numbers if 1 <= number <= len(passages)]
    return [passages[number - 1] for number in dict.fromkeys([*order, *range(1, len(passages) + 1)])]
