"""Tree of Reviews as we know it to be better: it stops early, starts again, prunes more, reviews at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..lm.parallel import run_parallel
from ..metrics import normalise
from ..retrieval import Passage
from ..signatures import AnswerStyle
from .evidence import evidence_pool
from .majority import most_votes
from .tree import Ended, Node, ReasoningTree
from .tree_of_reviews_paper import TreeSearch, Visit


class BoundedTreeSearch(TreeSearch):
    """The paper's search with what its authors leave open, each part with a setting of its own.

    Attributes:
        calls: of the LM that reviews and completions took.
        proposed: the queries of rejected reviews: the number of the search, the parent's id, the query, its guess.
        again: those of which a search began once more.
    """

    def __init__(self, program: Any, tree: ReasoningTree, answer_style: AnswerStyle):
        super().__init__(program, tree, answer_style)
        self.calls, self.proposed, self.again = 0, list[tuple[int, int | None, str, str | None]](), list[str]()

    def search(self) -> None:
        """Search as the paper does; as long as every path is rejected, begin again with a query that a review wrote."""
        super().search()
        while self.begin_again(None, votes=1):
            pass

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
        """Search below the parent for a query that so many rejected reviews ask for; return whether there was one.

        Where a path has led on from there, none is: its own query comes after what they lack.
        """
        led_on = any(node.action not in ("reject", None) for node in self.tree.children(parent))
        spent = len(self.again) >= max(1, len(self.widths()) - 1)  # with the first, as many searches as levels
        if led_on or spent or not self.settings.second_search or self.ended():
            return False
        tried = {normalise(query) for query in [*self.again, *(node.query for node in self.tree.nodes)]}
        latest_first = sorted(self.proposed, key=lambda one: -one[0])
        asked = [(query, guess) for _, id, query, guess in latest_first if id == (parent and parent.id)]
        count = Counter(normalise(query) for query, _ in asked)
        for query, guess in asked:
            if normalise(query) not in tried and count[normalise(query)] >= votes:
                self.again.append(query)
                self.search_below(parent, query, guess)
                return True
        return False

    def review(self, nodes: list[Node]) -> list[Node]:
        """Review the paths that end in these nodes, at the same time; return the children that their searches open.

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
        if enough is not None:
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
        """Return why nothing is searched for from this node: it is at full depth, or the calls are spent."""
        if (full := super().stop(node)) and self.settings.second_search and self.settings.expansion != "mpc":
            return None
        left = self.left()
        return full or ("out of calls" if left is not None and left < self.cost(node) else None)

    def open(self, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """Open children as the paper does; at full depth, keep the best new paragraph, which only the fusion reads."""
        if parent is None or super().stop(parent) is None:
            return super().open(parent, query, found)
        self.tree.update(parent, ended="full depth")
        pruned, fields = self.pruning(parent), {"source": "passage", "ended": "full depth", "round": parent.round + 1}
        for best in [passage for passage in found if pruned(passage) is None][:1]:
            self.tree.grow(parent, query=query, passage=best, **fields)
        return []

    def record(self, node: Node, visit: Visit) -> Node:
        """Write the review into the node; count its calls, and keep the query that a rejected one proposes."""
        expanded = visit.action == "search" and visit.ended not in ("full depth", "out of calls")
        self.calls += self.cost(node) if expanded else 1
        if visit.action == "reject" and visit.outcome.next_query:
            self.proposed.append((len(self.again), node.parent, visit.outcome.next_query, visit.outcome.guess))
        return super().record(node, visit)

    def pruning(self, parent: Node | None) -> Callable[[Passage], Ended | None]:
        """Return what tells why a paragraph opens no path: beyond the paper, also by set and by meaning."""
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
