"""The evidence pool of Tree of Reviews: what was accepted, how much of it is read, how it is ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from ..metrics import f1, normalise
from ..retrieval import Passage
from .tree import Node, ReasoningTree

Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""How alike texts are: one row for each of the first, one column for each of the second, higher is more alike."""


class Evidence(BaseModel):
    """An accepted path: the brief analysis, which is its answer, and its paragraphs from the root on."""

    model_config = ConfigDict(frozen=True)

    answer: str
    passages: tuple[Passage, ...]

    def text(self) -> str:
        """All of it, as one text."""
        return "\n".join([self.answer, *(passage.shown() for passage in self.passages)])


def evidence_pool(tree: ReasoningTree) -> list[Evidence]:
    """The evidence that the tree holds, best first.

    Best is what the retriever ranked best, level by level: the order in which depth-first search meets the
    paths, in whichever order they were reviewed.
    """
    return [
        Evidence(answer=node.answer or "", passages=_paragraphs(tree, node))
        for node in _depth_first(tree, None)
        if node.action == "accept"
    ]


def relevant_passages(tree: ReasoningTree) -> list[Passage]:
    """The paragraphs of the paths that were found relevant but not enough, each once, best first."""
    paths = [
        _paragraphs(tree, node)
        for node in _depth_first(tree, None)
        if node.action == "search" and node.review and node.review.relevant
    ]
    return distinct(paths)


def distinct(paths: Sequence[Sequence[Passage]]) -> list[Passage]:
    """The passages of all paths, each once, in order."""
    return list({passage.id: passage for path in paths for passage in path}.values())


def within(evidence: list[Evidence], tokens: int) -> list[Evidence]:
    """As much evidence, best first, as the budget holds; the best at least (section 4.4).

    A passage that several pieces share counts once. What does not fit is passed over for smaller evidence.
    """
    taken: list[Evidence] = []
    for piece in evidence:
        grown = [*taken, piece]
        if not taken or _size(grown) <= tokens:
            taken = grown
    return taken


def passages_within(passages: list[Passage], tokens: int) -> list[Passage]:
    """The first passages that the budget holds."""
    sizes = [count_tokens(passage.shown()) for passage in passages]
    return [passage for n, passage in enumerate(passages, start=1) if sum(sizes[:n]) <= tokens]


def ranked_passages(evidence: list[Evidence], response: str, limit: int, similarity: Similarity) -> list[Passage]:
    """The paragraphs of the pool, at most ``limit``.

    Where there are more, those of the evidence most similar to the final response (section 4.2, note 1).
    """
    found = distinct([piece.passages for piece in evidence])
    if len(found) <= limit:
        return found
    likeness = [row[0] for row in similarity([piece.text() for piece in evidence], [response])]
    order = sorted(range(len(evidence)), key=lambda index: -likeness[index])
    return distinct([evidence[index].passages for index in order])[:limit]


def agreement(evidence: list[Evidence]) -> int:
    """How many pieces of evidence give the answer that most give, answers compared in their normal form."""
    return max(Counter(normalise(piece.answer) for piece in evidence).values(), default=0)


def count_tokens(text: str) -> int:
    """About how many tokens a text has, for any LM: four for three words, or one for four characters if more."""
    return max(len(text.split()) * 4 // 3, len(text) // 4)


def shared_words(texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
    """Similarity by words, for retrievers that have no embeddings: the F1 of their words in normal form."""
    return [[f1(text, [other]) for other in others] for text in texts]


def _size(evidence: list[Evidence]) -> int:
    passages = distinct([piece.passages for piece in evidence])
    return sum(count_tokens(text) for text in [*(p.shown() for p in passages), *(e.answer for e in evidence)])


def _depth_first(tree: ReasoningTree, parent: Node | None) -> list[Node]:
    return [node for child in tree.children(parent) for node in (child, *_depth_first(tree, child))]


def _paragraphs(tree: ReasoningTree, node: Node) -> tuple[Passage, ...]:
    return tuple(step.passage for step in tree.path_to(node) if step.passage is not None)
