"""Tree of Reviews."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import dspy
from pydantic import Field

from ..lm.failure import SettingsError
from ..lm.parallel import together
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from .demonstrations import Judgement, TraceStep
from .evidence import agreement, distinct, evidence_pool
from .modules.paragraph_review import Verdict
from .reviewing import Reviewing, ReviewingSettings
from .tree import Action, Ended, Node, ReasoningTree


class TreeOfReviewsSettings(ReviewingSettings):
    """How Tree of Reviews searches; the defaults are those of section 4.4.

    Attributes:
        widths: how many paragraphs are retrieved at each level; as many levels as there are widths.
        repetitive_pruning: off, a paragraph of the evidence pool, or of the path itself, opens a path again.
        order: "depth-first" is the paper's, one call after the other. "level" reviews all paths of a level at the
            same time: a question takes as long as its longest path, and some calls more, since a path cannot yet
            profit from evidence that its neighbours are about to find. The default is the paper's, so that calls
            and recall are comparable with its own; where many questions run side by side it costs no time.
        semantic_pruning: beyond the paper, off where None: how alike a paragraph may at most be to one of the
            evidence pool or of its path, by the retriever's own embeddings; from there on it is pruned.
        enough_agreement: beyond the paper, off where None: the search ends when so many pieces of evidence agree.
        max_calls: beyond the paper, off where None: how many LM calls a question may take, the fusion among them.
            Calls repeated because a reply could not be parsed are not counted.
    """

    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(5, 3, 3), min_length=1)
    repetitive_pruning: bool = True
    order: Literal["depth-first", "level"] = "depth-first"
    semantic_pruning: float | None = None
    enough_agreement: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=1)


@dataclass
class Search:
    """The search for one question's evidence."""

    tree: ReasoningTree
    answer_style: AnswerStyle
    settings: TreeOfReviewsSettings
    calls: int = 0

    def batches(self, nodes: list[Node]) -> Iterator[list[Node]]:
        """The nodes to visit, those at the same time together: all at once, or what the budget surely holds."""
        while nodes:
            ended = self.ended()
            if ended is not None:
                for node in nodes:
                    self.tree.update(node, ended=ended)
                return
            left = self.left()
            count = len(nodes) if left is None else max(1, left // self.cost(nodes[0]))
            yield nodes[:count]
            nodes = nodes[count:]

    def ended(self) -> Ended | None:
        """Why no more nodes are visited, if so."""
        enough = self.settings.enough_agreement
        if enough is not None and agreement(evidence_pool(self.tree)) >= enough:
            return "enough agreement"
        left = self.left()
        return "out of calls" if left is not None and left < 1 else None

    def left(self) -> int | None:
        """How many calls the search may still take, when one is kept for the fusion; None for any number."""
        return None if self.settings.max_calls is None else self.settings.max_calls - 1 - self.calls

    def cost(self, node: Node) -> int:
        """The calls that a visit may take: the review, and a completion where it can open a search."""
        return 2 if self.settings.expansion == "mpc" and node.round < len(self.settings.widths) else 1


@dataclass(frozen=True)
class Visit:
    """What came of a node's review."""

    verdict: Verdict
    action: Action
    ended: Ended | None
    calls: int = 1
    query: str | None = None
    found: tuple[Passage, ...] = ()


class TreeOfReviews(Reviewing):
    """Tree of Reviews (Li et al., 2024, arXiv 2404.14464).

    The root is the question, every other node one paragraph. A path, from the root to a node, is reviewed as one
    whole: rejected, accepted as evidence, or searched on from, which opens a child for each paragraph found.

    Where the paper leaves open, or we differ:

    - Which review goes with missing-paragraph completion: the one without thoughts, so that the expansions differ
      in nothing but the query.
    - Repetitive pruning compares with the evidence pool, when a search has found its paragraphs; and with the
      path itself, since a completion often finds again the paragraph that it completes.
    - What the reader is given when nothing was accepted: see `Reviewing.fuse`.
    - The evidence's order, where the token budget does not hold all: see `evidence_pool`.

    Args:
        retriever: finds the paragraphs.
        settings: see `TreeOfReviewsSettings` and `ReviewingSettings`.

    Raises:
        SettingsError: if paragraphs are to be pruned by meaning, and the retriever has no embeddings to offer.
    """

    name: ClassVar[str] = "tree-of-reviews"
    Settings = TreeOfReviewsSettings
    settings: TreeOfReviewsSettings

    def __init__(self, retriever: Retriever | None = None, settings: TreeOfReviewsSettings | None = None):
        super().__init__(retriever, settings or TreeOfReviewsSettings())
        if self.settings.semantic_pruning is not None and (retriever is None or retriever.similarity is None):
            raise SettingsError(
                "semantic_pruning compares paragraphs by the retriever's embeddings, and "
                f"{retriever.name if retriever else 'no retriever'} offers none (`similarity` is None); "
                "use a neural index, or leave semantic_pruning out."
            )

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Section 3.1: search until every path has ended, then answer from the evidence."""
        search = Search(tree, answer_style, self.settings)
        paragraphs = self.retrieve(tree.question, self.settings.widths[0])
        children = self.open(search, None, tree.question, paragraphs)
        if self.settings.order == "depth-first":
            self.depth_first(search, children)
        else:
            self.level_by_level(search, children)
        return self.fuse(tree, answer_style)

    def depth_first(self, search: Search, nodes: list[Node]) -> None:
        """Section 3.2: each node, and all below it, before the next."""
        for node in nodes:
            self.depth_first(search, self.review(search, [node]))

    def level_by_level(self, search: Search, nodes: list[Node]) -> None:
        """The nodes of a level at the same time, before those below them."""
        while nodes:
            nodes = self.review(search, nodes)

    def review(self, search: Search, nodes: list[Node]) -> list[Node]:
        """Review the paths that end in these nodes, at the same time; the children that their searches open.

        All reviews count before any child is opened: what is pruned does not depend on which reply comes first.
        """
        opened: list[tuple[Node, Visit]] = []
        for batch in search.batches(nodes):
            visits = together([partial(self.visit, search, node) for node in batch])
            opened += [(self.record(search, node, visit), visit) for node, visit in zip(batch, visits, strict=True)]
        return [
            child
            for node, visit in opened
            if visit.query is not None
            for child in self.open(search, node, visit.query, list(visit.found))
        ]

    def visit(self, search: Search, node: Node) -> Visit:
        """Section 3.2: review the node's path; where more is needed, find the query and retrieve with it."""
        question, level, left = search.tree.question, node.round, search.left()
        path = [step.passage for step in search.tree.path_to(node) if step.passage is not None]
        verdict = self.paragraph_review(question=question, answer_style=search.answer_style, passages=path)
        action = self.action(verdict)
        if action != "search":
            return Visit(verdict, action, "accepted" if action == "accept" else "rejected")
        if level == len(self.settings.widths):
            return Visit(verdict, action, "full depth")
        if left is not None and left < search.cost(node):
            return Visit(verdict, action, "out of calls")
        query = self.expand(question, path, verdict)
        if query is None:
            return Visit(verdict, action, "no query", search.cost(node))
        found = tuple(self.retrieve(query, self.settings.widths[level]))
        return Visit(verdict, action, None if found else "nothing retrieved", search.cost(node), query, found)

    def record(self, search: Search, node: Node, visit: Visit) -> Node:
        """The node with its review; an accepted one is evidence from now on."""
        search.calls += visit.calls
        return search.tree.update(
            node,
            review=visit.verdict.review,
            action=visit.action,
            answer=visit.verdict.answer if visit.action == "accept" else None,
            next_query=visit.query,
            ended=visit.ended,
        )

    def open(self, search: Search, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """A child for each paragraph found; those that section 3.4 does not prune are to be reviewed."""
        path = [step.passage for step in search.tree.path_to(parent) if step.passage is not None]
        known = distinct([path, *(piece.passages for piece in evidence_pool(search.tree))])
        level = 1 if parent is None else parent.round + 1
        children = [
            search.tree.grow(
                parent, round=level, query=query, source="passage", passage=passage, ended=self.pruned(passage, known)
            )
            for passage in found
        ]
        return [child for child in children if child.ended is None]

    def pruned(self, passage: Passage, known: list[Passage]) -> Ended | None:
        """Why the paragraph adds nothing to those that are known, if so."""
        threshold = self.settings.semantic_pruning
        if self.settings.repetitive_pruning and passage.id in {one.id for one in known}:
            return "repeated"
        if threshold is not None and known:
            likeness = self.similarity([passage.shown()], [one.shown() for one in known])[0]
            return "near-duplicate" if max(likeness) >= threshold else None
        return None

    def judgements(self, step: TraceStep) -> list[Judgement]:
        """Of a review: its node's paragraph, the last one of the path."""
        _, given, reply = step
        return [Judgement(given["passages"][-1:], reply.relevant)] if "relevant" in reply else []
