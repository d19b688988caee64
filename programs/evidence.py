"""The evidence pool of Tree of Reviews: the accepted paths, how much of them is read, how they are ranked."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ..common.sentences import sentences
from ..metrics import contains, f1, marks_before_stops
from ..retrieval import Passage
from ..retrieval.contracts import Similarity
from .answer import answer_items
from .references import distinct, numbers_of, renumbered
from .tree import Node, ReasoningTree


class Evidence(BaseModel):
    """An accepted path: the brief analysis, its answer, and its paragraphs from the root on.

    Attributes:
        analysis: the facts that the review found on the path, or its thoughts; the answer if it wrote none.
        answer: what the path's paragraphs answer.
        passages: the paragraphs.
    """

    model_config = ConfigDict(frozen=True)

    analysis: str
    answer: str
    passages: tuple[Passage, ...]

    def text(self) -> str:
        """Return the analysis, the answer and the paragraphs as one text."""
        return "\n".join([self.analysis, self.answer, *(passage.shown() for passage in self.passages)])


def evidence_pool(tree: ReasoningTree) -> list[Evidence]:
    """Return the evidence that the tree holds, best first.

    The order is that of the retriever's ranking, level by level, in which a depth-first search visits the paths. It
    does not depend on when they were reviewed.
    """
    return [
        Evidence(
            analysis=(node.review and node.review.thoughts) or node.answer or "",
            answer=node.answer or "",
            passages=tuple(tree.paragraphs_to(node)),
        )
        for node in _depth_first(tree, None)
        if node.action == "accept"
    ]


def united(pieces: Sequence[Evidence]) -> Evidence:
    """Merge the paths of a list question: each fact and each item once, marks numbered over all passages."""
    passages = distinct([piece.passages for piece in pieces])
    number, facts = numbers_of(passages), list[str]()
    for piece in pieces:
        own = dict(enumerate((number[passage.id] for passage in piece.passages), start=1))
        facts += sentences(marks_before_stops(renumbered(piece.analysis, own)))
    told = [item for piece in pieces for item in answer_items(piece.answer)]
    return Evidence(
        analysis=" ".join(dict.fromkeys(facts)),
        answer="; ".join(answer_items("; ".join(told))),
        passages=tuple(passages),
    )


def relevant_passages(tree: ReasoningTree) -> list[Passage]:
    """Return the paragraphs of the paths that were found relevant but not enough, each once, best first."""

    def leads_on(node: Node) -> bool:
        if node.review is None:  # found with the query of a review at full depth
            return node.ended == "full depth"
        return node.action == "search" and node.review.relevant

    return distinct([tree.paragraphs_to(node) for node in _depth_first(tree, None) if leads_on(node)])


def rejected_on_topic(tree: ReasoningTree) -> list[Passage]:
    """Return the rejected paragraphs whose title the question names, or a query that a review wrote."""
    queries = [tree.question, *(node.query for node in tree.nodes)]
    rejected = [(passage, passage.title.partition(" (")[0]) for passage in rejected_passages(tree)]
    return [passage for passage, name in rejected if any(contains(query, name) for query in queries)]


def rejected_passages(tree: ReasoningTree) -> list[Passage]:
    """Return the rejected paragraphs, best first."""
    return [node.passage for node in _depth_first(tree, None) if node.action == "reject" and node.passage]


def evidence_within(evidence: list[Evidence], tokens: int) -> list[Evidence]:
    """Return as much evidence, best first, as the budget holds, and at least the best piece (section 4.4).

    A passage that several pieces share counts once. A piece that does not fit is skipped; smaller ones may follow.
    """
    taken: list[Evidence] = []
    for piece in evidence:
        grown = [*taken, piece]
        if not taken or _size(grown) <= tokens:
            taken = grown
    return taken


def passages_within(passages: list[Passage], tokens: int) -> list[Passage]:
    """Return the first passages, as many as the budget holds, and at least one."""
    sizes = [count_tokens(passage.shown()) for passage in passages]
    return [passage for n, passage in enumerate(passages, start=1) if n == 1 or sum(sizes[:n]) <= tokens]


def ranked_passages(evidence: list[Evidence], response: str, limit: int, similarity: Similarity) -> list[Passage]:
    """Return the paragraphs of the pool, at most ``limit``.

    If there are more, those of the evidence most similar to the final response (section 4.2, note 1).
    """
    passages = distinct([piece.passages for piece in evidence])
    if len(passages) <= limit:
        return passages
    likeness = [row[0] for row in similarity([piece.text() for piece in evidence], [response])]
    order = sorted(range(len(evidence)), key=lambda index: -likeness[index])
    return distinct([evidence[index].passages for index in order])[:limit]


def count_tokens(text: str) -> int:
    """Count about how many tokens a text has, for any LM: four for three words, or one for four bytes if that is more.

    Chinese has three bytes for a character, and no spaces between words.
    """
    return max(len(text.split()) * 4 // 3, len(text.encode(errors="replace")) // 4)


def compare_words(texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
    """Return the F1 of the texts' words, in normal form: a `Similarity` for retrievers without embeddings."""
    return [[f1(text, [other]) for other in others] for text in texts]


def _size(evidence: list[Evidence]) -> int:
    passages = distinct([piece.passages for piece in evidence])
    texts = [text for piece in evidence for text in {piece.analysis, piece.answer}]
    return sum(count_tokens(text) for text in [*(passage.shown() for passage in passages), *texts])


def _depth_first(tree: ReasoningTree, parent: Node | None) -> list[Node]:
    return [node for child in tree.children(parent) for node in (child, *_depth_first(tree, child))]
