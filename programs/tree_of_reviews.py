"""Tree of Reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import dspy
from pydantic import Field

from ..common.errors import QuestreeError
from ..lm.parallel import run_parallel
from ..metrics import normalise
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from .evidence import evidence_pool
from .majority import most_votes
from .path_search import PathSearch, Reviewing, ReviewingSettings, Visit
from .tree import Ended, Node, ReasoningTree


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
        enough_agreement: beyond the paper, None for off: the search ends when so many pieces of evidence agree. Of a
            list, it goes on: each path may tell other items.
        second_search: beyond the paper, three kinds of further searches. As long as every paragraph is rejected, the
            search begins again with a query that a review wrote; with the first, there are at most as many searches as
            levels. Depth first, a query that two rejected siblings ask for is searched for before the others are
            reviewed. If nothing is accepted in the end, the queries that reviews wrote at full depth are searched for,
            and only the fusion reads the best paragraph that each finds.
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

    @property
    def beyond_paper(self) -> bool:
        """Return whether the search has a part that the paper's search does not have."""
        parts = (self.set_pruning, self.second_search, self.enough_agreement, self.semantic_pruning, self.max_calls)
        return self.order != "depth-first" or any(part not in (None, False) for part in parts)


class TreeOfReviews(Reviewing):
    """Tree of Reviews (Li et al., 2024, arXiv 2404.14464): each paragraph is reviewed, and leads on by itself.

    The root is the question, every other node one paragraph. A path, from the root to a node, is reviewed as one
    whole: rejected, accepted as evidence, or searched on from, which opens a child for each paragraph found.

    Where the paper leaves it open, or we differ:

    - By default the review lists the facts, and writes the query and the missing paragraph in the same call; the
      search ends with the first evidence, and begins once more where nothing led on. ``preset=paper`` has a call for
      each, searches on, and gives up.
    - Missing-paragraph completion goes with the review of direct expansion, so that these two differ only in the query;
      CoT expansion has a review with thoughts, which are the analysis of a path; else it is what the review gives.
    - Repetitive pruning compares the paragraphs that a search found with the evidence pool, and also with the path
      itself: a completion often finds the paragraph again that it completes.
    - What the answer is read from if nothing was accepted: see `Reviewing.fuse`.
    - The order of the evidence, if the token budget does not hold all of it: see `evidence_pool`.

    Args:
        retriever: finds the paragraphs.
        settings: see `TreeOfReviewsSettings` and `ReviewingSettings`.

    Raises:
        QuestreeError: if paragraphs are to be pruned by meaning, and the retriever has no embeddings.
    """

    name: ClassVar[str] = "tree-of-reviews"
    Settings = TreeOfReviewsSettings
    settings: TreeOfReviewsSettings
    judges_last = True

    def __init__(self, retriever: Retriever | None = None, settings: TreeOfReviewsSettings | None = None):
        super().__init__(retriever, settings)
        if self.settings.semantic_pruning is not None and (retriever is None or retriever.similarity is None):
            raise QuestreeError(
                "semantic_pruning compares paragraphs by the retriever's embeddings, and "
                f"{retriever.name if retriever else 'no retriever'} offers none (`similarity` is None); "
                "use a neural index, or leave semantic_pruning out."
            )

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search until every path has ended, then answer from the evidence (section 3.1)."""
        if self.settings.beyond_paper:
            BoundedPathSearch(self, tree, answer_style).search()
        else:
            PathSearch(self, tree, answer_style, self.settings.widths, self.settings.repetitive_pruning).search()
        return self.fuse(tree, answer_style)


class ProposedSearch(NamedTuple):
    """A search that a rejected review proposes.

    Attributes:
        begun: how often the search had begun again by then.
        parent: the id of the node that the rejected one stands under; None at the root.
        query: to search with.
        guess: what the query would find, if the review guessed it.
    """

    begun: int
    parent: int | None
    query: str
    guess: str | None


class BoundedPathSearch(PathSearch):
    """The paper's search, and what goes beyond it: it stops early, begins again, prunes more, reviews level by level.

    Attributes:
        calls: how many LM calls reviews and completions took.
        proposed: by rejected reviews.
        again: the queries with which the search began again.
        deepest: the nodes at full depth that need another search, with its query and guess.
    """

    settings: TreeOfReviewsSettings

    def __init__(self, program: TreeOfReviews, tree: ReasoningTree, answer_style: AnswerStyle):
        super().__init__(program, tree, answer_style, program.settings.widths, program.settings.repetitive_pruning)
        self.calls, self.proposed, self.again = 0, list[ProposedSearch](), list[str]()
        self.deepest = list[tuple[Node, str, str | None]]()

    def search(self) -> None:
        """Search as the paper does; as long as every path is rejected, begin again with a query that a review wrote."""
        super().search()
        while self.begin_again(None, votes=1):
            pass
        if not evidence_pool(self.tree):
            self.search_deepest()

    def follow(self, nodes: list[Node]) -> None:
        """Review the nodes depth first, or level by level.

        Depth first, the query that two rejected siblings ask for is searched for before the others are reviewed.
        """
        if self.settings.order == "depth-first":
            for node in nodes:
                self.follow(self.review([node]))
                self.begin_again(self.tree.parent(node), votes=2)
        else:
            while nodes:
                nodes = self.review(nodes)

    def begin_again(self, parent: Node | None, votes: int) -> bool:
        """Search below the parent with a query that so many rejected reviews ask for; return whether there was one.

        There is none if a path has led on from the parent: that path has a query of its own.
        """
        led_on = any(node.action not in ("reject", None) for node in self.tree.children(parent))
        spent = len(self.again) >= max(1, len(self.widths) - 1)  # with the first search, one for each level
        if led_on or spent or not self.settings.second_search or self.ended():
            return False
        tried = {normalise(query) for query in [*self.again, *(node.query for node in self.tree.nodes)]}
        latest_first = sorted(self.proposed, key=lambda proposed: -proposed.begun)
        proposals = [proposed for proposed in latest_first if proposed.parent == (parent and parent.id)]
        count = Counter(normalise(proposed.query) for proposed in proposals)
        for _, _, query, guess in proposals:
            if normalise(query) not in tried and count[normalise(query)] >= votes:
                self.again.append(query)
                self.search_below(parent, query, guess)
                return True
        return False

    def review(self, nodes: list[Node]) -> list[Node]:
        """Review the paths to these nodes at the same time; return the children that their searches open.

        All reviews are recorded before any child is opened: what is pruned does not depend on the order of replies.
        """
        opened: list[tuple[Node, Visit]] = []
        for batch in self.batches(nodes):
            visits = run_parallel([partial(self.visit, node) for node in batch])
            opened += [(self.record(node, visit), visit) for node, visit in zip(batch, visits, strict=True)]
        return [
            child
            for node, visit in opened
            if visit.query is not None
            for child in self.open(node, visit.query, list(visit.found))
        ]

    def batches(self, nodes: list[Node]) -> Iterator[list[Node]]:
        """Yield the nodes in groups to visit at the same time: all of them, or as many as the budget surely holds."""
        while nodes:
            if ended := self.ended():
                for node in nodes:
                    self.tree.update(node, ended=ended)
                return
            left = self.left()
            count = len(nodes) if left is None else max(1, left // self.cost(nodes[0]))
            yield nodes[:count]
            nodes = nodes[count:]

    def ended(self) -> Ended | None:
        """Return why no more nodes are visited; None if more are."""
        enough, left = self.settings.enough_agreement, self.left()
        if enough is not None and self.answer_style != "list":
            agreeing = most_votes([piece.answer for piece in evidence_pool(self.tree)], self.answer_style)
            if agreeing >= enough:
                return "enough agreement"
        return "out of calls" if left is not None and left < 1 else None

    def left(self) -> int | None:
        """Return how many calls the search may still take, one being kept for the fusion; None for any number."""
        return None if self.settings.max_calls is None else self.settings.max_calls - 1 - self.calls

    def cost(self, node: Node) -> int:
        """Return how many calls a visit may take: the review, and a completion if it can open a search."""
        return 2 if self.settings.expansion == "mpc" and node.round < len(self.settings.widths) else 1

    def stop(self, node: Node) -> Ended | None:
        """Return why no search starts from this node: it is at full depth, or the calls are spent."""
        left = self.left()
        return super().stop(node) or ("out of calls" if left is not None and left < self.cost(node) else None)

    def search_deepest(self) -> None:
        """Search for what paths at full depth lack; keep the best new paragraph, which only the fusion reads."""
        for parent, query, guess in self.deepest:
            found, pruned = self.program.retrieve_with(query, guess, self.widths[-1]), self.pruning(parent)
            fields: dict[str, Any] = {"source": "passage", "ended": "full depth", "round": parent.round + 1}
            for best in [passage for passage in found if pruned(passage) is None][:1]:
                self.tree.grow(parent, query=query, passage=best, **fields)

    def record(self, node: Node, visit: Visit) -> Node:
        """Write the review into the node; count its calls, and keep the query that a rejected one proposes."""
        expanded = visit.action == "search" and visit.ended not in ("full depth", "out of calls")
        self.calls += self.cost(node) if expanded else 1
        if visit.action == "reject" and (outcome := visit.outcome).next_query:
            self.proposed.append(ProposedSearch(len(self.again), node.parent, outcome.next_query, outcome.guess))
        recorded, query = super().record(node, visit), visit.outcome.next_query
        if visit.ended == "full depth" and query and self.settings.second_search and self.settings.expansion != "mpc":
            self.deepest.append((recorded, query, visit.outcome.guess))
        return recorded

    def pruning(self, parent: Node | None) -> Callable[[Passage], Ended | None]:
        """Return a function that says why a paragraph opens no path: beyond the paper, also by set and by meaning."""
        threshold, known, repeated = self.settings.semantic_pruning, self.known(parent), super().pruning(parent)
        ids = frozenset(passage.id for passage in self.tree.paragraphs_to(parent))
        seen = self.opened_sets() if self.settings.set_pruning else set()

        def pruned(passage: Passage) -> Ended | None:
            if ids | {passage.id} in seen or repeated(passage):
                return "repeated"
            if threshold is None or not known:
                return None
            (likeness,) = self.program.similarity([passage.shown()], [one.shown() for one in known])
            return "near-duplicate" if max(likeness) >= threshold else None

        return pruned

    def opened_sets(self) -> set[frozenset[str]]:
        """Return the paragraphs of each path that was reviewed, or will be, as a set of their ids."""
        opened = (node for node in self.tree.nodes if node.review is not None or node.ended is None)
        return {frozenset(passage.id for passage in self.tree.paragraphs_to(node)) for node in opened}
