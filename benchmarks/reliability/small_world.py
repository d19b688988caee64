"""The bundled questions with a retriever and an LM that need nothing to be made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import dspy

from questree.data import load_task
from questree.retrieval import BaseRetriever, Passage
from questree.retrieval.corpora.corpus import read_corpus
from questree.simulate import Mind, SimulatedEngine, Traits, World

_WORD = re.compile(r"\w+")


class WordIndex(BaseRetriever):
    """The passages that share most words with the query; a retriever without an index to build."""

    name = "words"
    fingerprint = "words"

    def __init__(self, passages: Sequence[Passage]):
        self.passages = list(passages)
        self.words = [set(_WORD.findall(f"{one.title} {one.text}".lower())) for one in self.passages]
        self.spread = Counter(word for words in self.words for word in words)

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """The k best, best first."""
        asked = set(_WORD.findall(query.lower()))
        scores = [sum(1 / self.spread[word] for word in asked & words) for words in self.words]
        best = sorted(range(len(scores)), key=lambda n: (-scores[n], n))[:k]
        return [self.passages[n].model_copy(update={"score": scores[n]}) for n in best]

    def batch(self, queries: Sequence[str], k: int = 1) -> list[list[Passage]]:
        """As single calls give."""
        return [self(query, k) for query in queries]


def small_world() -> tuple[list[dspy.Example], WordIndex, SimulatedEngine]:
    """The bundled questions, their passages, and an engine of a simulated LM that writes nothing malformed."""
    task = load_task("mini")
    questions = [question for split in task.questions.values() for question in split]
    engine = SimulatedEngine(Mind(World(questions), Traits(malformed=0)))
    return task.examples("dev"), WordIndex(list(read_corpus(task.corpus))), engine
