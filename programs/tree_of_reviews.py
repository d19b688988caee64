"""Tree of Reviews."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..lm.failure import SettingsError
from ..lm.parallel import run_parallel
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from .evidence import agreeing, evidence_pool
from .modules.reviews import Verdict
from .references import distinct
from .reviews import Reviewing, ReviewingSettings
from .tree import Action, Ended, Node, ReasoningTree


class TreeOfReviewsSettings(ReviewingSettings):
    """How Tree of Reviews searches; the defaults are those of section 4.4.

    Attributes:
        widths: how many paragraphs are retrieved at each level; as many levels as there are widths.
        repetitive_pruning: if off, a paragraph of the evidence pool, or of the path itself, opens a path again.
        order: "depth-first" is the paper's, one call after the other. "level" reviews all paths of a level at the
            same time: a question takes as long as its longest path, but some calls more, since a path cannot use
            evidence that its neighbours find at the same time. The default is the paper's, so that calls and recall
            are comparable with its figures; it costs no time if many questions run side by side.
        semantic_pruning: beyond the paper, None for off: a paragraph is pruned if its similarity, by the retriever's
            embeddings, to a paragraph of the evidence pool or of its path is as high as this.
        set_pruning: beyond the paper: of paths with the same paragraphs in another order, one is reviewed. So a
            paragraph of the path itself opens none, also without ``repetitive_pruning``.
        enough_agreement: beyond the paper, None for off: the search ends when so many pieces of evidence agree.
        second_search: beyond the paper: where every paragraph that the question finds is rejected, the first query
            that a review wrote is searched for, as the question was.
        max_calls: beyond the paper, None for off: how many LM calls a question may take, including the fusion.
            Calls repeated because a reply could not be parsed are not counted.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "expansion": "mpc",
        "set_pruning": False,
        "enough_agreement": None,
        "second_search": False,
    }

    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(5, 3, 3), min_length=1)
    repetitive_pruning: bool = True
    order: Literal["depth-first", "level"] = "depth-first"
    semantic_pruning: float | None = None
    set_pruning: bool = True
    enough_agreement: int | None = Field(default=1, ge=1)
    second_search: bool = True
    max_calls: int | None = Field(default=None, ge=1)


@dataclass
class Search:
    """The search for one question's evidence."""

    tree: ReasoningTree
    answer_style: AnswerStyle
    settings: TreeOfReviewsSettings
    calls: int = 0
    proposed: list[tuple[str, str | None]] = field(default_factory=list)
    """Queries of rejected reviews, each with its guess."""

    def batches(self, nodes: list[Node]) -> Iterator[list[Node]]:
        """Yield the nodes in groups to visit at the same time: all of them, or as many as the budget surely holds."""
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
        """Return why no more nodes are visited; None if more are."""
        enough = self.settings.enough_agreement
        if enough is not None and agreeing(evidence_pool(self.tree), self.answer_style) >= enough:
            return "enough agreement"
        left = self.left()
        return "out of calls" if left is not None and left < 1 else None

    def left(self) -> int | None:
        """Return how many calls the search may still take, one being kept for the fusion; None for any number."""
        return None if self.settings.max_calls is None else self.settings.max_calls - 1 - self.calls

    def tried(self) -> list[str]:
        """Return the queries that were searched for, each once."""
        return list(dict.fromkeys(node.query for node in self.tree.nodes))

    def leads_nowhere(self) -> bool:
        """Return whether every path that was reviewed is rejected."""
        return all(node.action in ("reject", None) for node in self.tree.nodes)

    def cost(self, node: Node) -> int:
        """Return how many calls a visit may take: the review, and a completion if it can open a search."""
        return 2 if self.settings.expansion == "mpc" and node.round < len(self.settings.widths) else 1


@dataclass(frozen=True)
class Visit:
    """A node's review and what followed from it."""

    verdict: Verdict
    action: Action
    ended: Ended | None
    calls: int = 1
    query: str | None = None
    found: tuple[Passage, ...] = ()


class TreeOfReviews(Reviewing):
    """Tree of Reviews (Li et al., 2024, arXiv 2404.14464): each paragraph is reviewed, and leads on by itself.

    The root is the question, every other node one paragraph. A path, from the root to a node, is reviewed as one
    whole: rejected, accepted as evidence, or searched on from, which opens a child for each paragraph found.

    Where the paper leaves open, or we differ:

    - By default the review lists the facts, and writes the query and the missing paragraph in the same call; the
      search ends with the first evidence, and begins once more where nothing led on. ``preset=paper`` has a call for
      each, searches on, and gives up.
    - Missing-paragraph completion goes with the review without thoughts, so that the expansions differ only in the
      query.
    - Repetitive pruning compares the paragraphs that a search found with the evidence pool, and also with the path
      itself: a completion often finds the paragraph again that it completes.
    - What the answer is read from if nothing was accepted: see `Reviewing.fuse`.
    - The order of the evidence, if the token budget does not hold all of it: see `evidence_pool`.

    Args:
        retriever: finds the paragraphs.
        settings: see `TreeOfReviewsSettings` and `ReviewingSettings`.

    Raises:
        SettingsError: if paragraphs are to be pruned by meaning, and the retriever has no embeddings.
    """

    name: ClassVar[str] = "tree-of-reviews"
    Settings = TreeOfReviewsSettings
    settings: TreeOfReviewsSettings
    judges_last = True

    def __init__(self, retriever: Retriever | None = None, settings: TreeOfReviewsSettings | None = None):
        super().__init__(retriever, settings)
        if self.settings.semantic_pruning is not None and (retriever is None or retriever.similarity is None):
            raise SettingsError(
                "semantic_pruning compares paragraphs by the retriever's embeddings, and "
                f"{retriever.name if retriever else 'no retriever'} offers none (`similarity` is None); "
                "use a neural index, or leave semantic_pruning out."
            )

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search until every path has ended, then answer from the evidence (section 3.1)."""
        search = Search(tree, answer_style, self.settings)
        self.search_from_root(search, tree.question)
        if self.settings.second_search and search.proposed and search.leads_nowhere():
            self.search_from_root(search, *search.proposed[0])
        return self.fuse(tree, answer_style)

    def search_from_root(self, search: Search, query: str, guess: str | None = None) -> None:
        """Open a path for each paragraph that the query finds, and follow them all."""
        children = self.open(search, None, query, self.search(query, guess, self.settings.widths[0]))
        if self.settings.order == "depth-first":
            self.depth_first(search, children)
        else:
            self.level_by_level(search, children)

    def depth_first(self, search: Search, nodes: list[Node]) -> None:
        """Review each node, and all nodes below it, before the next (section 3.2)."""
        for node in nodes:
            self.depth_first(search, self.review(search, [node]))

    def level_by_level(self, search: Search, nodes: list[Node]) -> None:
        """Review the nodes of a level at the same time, before those below them."""
        while nodes:
            nodes = self.review(search, nodes)

    def review(self, search: Search, nodes: list[Node]) -> list[Node]:
        """Review the paths that end in these nodes, at the same time; return the children that their searches open.

        All reviews are recorded before any child is opened: what is pruned does not depend on the order of replies.
        """
        opened: list[tuple[Node, Visit]] = []
        for batch in search.batches(nodes):
            visits = run_parallel([partial(self.visit, search, node) for node in batch])
            opened += [(self.record(search, node, visit), visit) for node, visit in zip(batch, visits, strict=True)]
        return [
            child
            for node, visit in opened
            if visit.query is not None
            for child in self.open(search, node, visit.query, list(visit.found))
        ]

    def visit(self, search: Search, node: Node) -> Visit:
        """Review the node's path; if more is needed, find the query and retrieve with it (section 3.2)."""
        question, level, left = search.tree.question, node.round, search.left()
        path = search.tree.paragraphs_to(node)
        verdict = self.paragraph_review(
            question=question, answer_style=search.answer_style, passages=path, tried=search.tried()
        )
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
        found = tuple(self.search(query, verdict.guess, self.settings.widths[level]))
        return Visit(verdict, action, None if found else "nothing retrieved", search.cost(node), query, found)

    def record(self, search: Search, node: Node, visit: Visit) -> Node:
        """Write the review into the node and return it; an accepted node is evidence from now on."""
        search.calls += visit.calls
        if visit.action == "reject" and visit.verdict.next_query:
            search.proposed.append((visit.verdict.next_query, visit.verdict.guess))
        return search.tree.update(
            node,
            review=visit.verdict.review,
            action=visit.action,
            answer=visit.verdict.answer if visit.action == "accept" else None,
            next_query=visit.query,
            ended=visit.ended,
        )

    def open(self, search: Search, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """Open a child for each paragraph found; return those that are not pruned (section 3.4)."""
        path = search.tree.paragraphs_to(parent)
        known = distinct([path, *(piece.passages for piece in evidence_pool(search.tree))])
        level = 1 if parent is None else parent.round + 1
        seen = opened_sets(search.tree) if self.settings.set_pruning else set()
        ids = frozenset(passage.id for passage in path)
        children = [
            search.tree.grow(
                parent,
                round=level,
                query=query,
                source="passage",
                passage=passage,
                ended="repeated" if ids | {passage.id} in seen else self.pruned(passage, known),
            )
            for passage in found
        ]
        return [child for child in children if child.ended is None]

    def pruned(self, passage: Passage, known: list[Passage]) -> Ended | None:
        """Return why the paragraph adds nothing to the known ones; None if it adds something."""
        threshold = self.settings.semantic_pruning
        if self.settings.repetitive_pruning and passage.id in {one.id for one in known}:
            return "repeated"
        if threshold is not None and known:
            likeness = self.similarity([passage.shown()], [one.shown() for one in known])[0]
            return "near-duplicate" if max(likeness) >= threshold else None
        return None


def opened_sets(tree: ReasoningTree) -> set[frozenset[str]]:
    """Return the paragraphs of each path that was reviewed, or will be, as a set of their ids."""
    opened = (node for node in tree.nodes if node.review is not None or node.ended is None)
    return {frozenset(passage.id for passage in tree.paragraphs_to(node)) for node in opened}
