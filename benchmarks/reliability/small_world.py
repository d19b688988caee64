"""The bundled questions with a retriever and an LM that need nothing to be made."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import dspy
from dspy.lm15 import Request, Response

from questree.data import load_task
from questree.retrieval import Passage, Retriever
from questree.retrieval.corpora.corpus import read_corpus
from questree.simulate import Mind, SimulatedEngine, Traits, World


class WordIndex(Retriever):
    """The passages that share most words with the query, rare words counting more; there is no index to build."""

    name = "words"
    fingerprint = "words-1"

    def __init__(self, passages: Sequence[Passage]):
        self.passages = list(passages)
        self.holders = defaultdict[str, list[int]](list)
        for position, passage in enumerate(self.passages):
            for word in {word.strip("?,.") for word in f"{passage.title} {passage.text}".lower().split()}:
                self.holders[word].append(position)

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        """Return the k best passages, best first."""
        scores = Counter[int]()
        for word in {word.strip("?,.") for word in query.lower().split()}:
            for position in self.holders.get(word, []):
                scores[position] += 1 / len(self.holders[word])
        best = sorted(scores, key=lambda position: (-scores[position], position))[:k]
        return [self.passages[position].model_copy(update={"score": scores[position]}) for position in best]

    def batch(self, queries: Sequence[str], k: int = 1) -> list[list[Passage]]:
        """Return what single calls give."""
        return [self(query, k) for query in queries]


class WatchedEngine(SimulatedEngine):
    """Counts each request, and calls a function as the n-th one comes in; samples alike are alike, however often asked.

    Attributes:
        asked: how often each prompt was asked so far.
    """

    def __init__(self, mind: Mind):
        super().__init__(mind)
        self.asked = Counter[str]()
        self._at, self._then = 0, _nothing
        self._counting = threading.Lock()

    @property
    def requests(self) -> int:
        """Return the number of requests so far."""
        return self.asked.total()

    def call_at(self, request: int, then: Callable[[], object]) -> None:
        """Call a function as the n-th request from now on comes in; 0 calls none."""
        with self._counting:
            self._at, self._then = self.requests + request if request else 0, then

    def reply_to(self, request: Request) -> Response:
        """Reply as a server that has just been started, which is asked this first."""
        with self._counting:
            self.asked[request.messages[-1].text or ""] += 1
            if self.requests == self._at:
                self._then()
        return SimulatedEngine(self.mind).reply_to(request)


def _nothing() -> None: ...


def mind(**traits: float) -> Mind:
    """Return a simulated mind that knows the bundled questions, and writes nothing malformed unless told."""
    questions = [question for split in load_task("mini").questions.values() for question in split]
    return Mind(World(questions), Traits(**{"malformed": 0, **traits}))


def small_world() -> tuple[list[dspy.Example], WordIndex, SimulatedEngine]:
    """Return the bundled questions, their passages, and an engine of a simulated LM."""
    task = load_task("mini")
    return task.examples("dev"), WordIndex(list(read_corpus(task.corpus))), SimulatedEngine(mind())
