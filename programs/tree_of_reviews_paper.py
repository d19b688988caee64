"""Tree of Reviews as its paper has it (Li et al., 2024, sections 3.1 to 3.4): depth first, one call after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..retrieval import Passage
from ..signatures import AnswerStyle
from .evidence import evidence_pool
from .modules.reviews import ReviewOutcome
from .references import distinct
from .tree import Action, Ended, Node, ReasoningTree


@dataclass(frozen=True)
class Visit:
    """A node's review and what followed from it."""

    outcome: ReviewOutcome
    action: Action
    ended: Ended | None
    query: str | None = None
    found: tuple[Passage, ...] = ()


class TreeSearch:
    """The search for one question's evidence, with the steps, settings and retriever of a Tree of Reviews."""

    def __init__(self, program: Any, tree: ReasoningTree, answer_style: AnswerStyle):
        self.program, self.settings, self.tree, self.answer_style = program, program.settings, tree, answer_style

    def search(self) -> None:
        """Search until every path is accepted, rejected or at full depth (section 3.1)."""
        self.search_below(None, self.tree.question)

    def widths(self) -> Sequence[int]:
        """Return how many paragraphs are retrieved at each level."""
        widths: Sequence[int] = self.settings.widths
        return widths

    def search_below(self, parent: Node | None, query: str, guess: str | None = None) -> None:
        """Open a path under the parent for each paragraph that the query finds, and follow them all."""
        width = self.widths()[parent.round if parent else 0]
        self.follow(self.open(parent, query, self.program.search(query, guess, width)))

    def follow(self, nodes: list[Node]) -> None:
        """Review each node, and all nodes below it, before the next (section 3.2)."""
        for node in nodes:
            visit = self.visit(node)
            node = self.record(node, visit)
            if visit.query is not None:
                self.follow(self.open(node, visit.query, list(visit.found)))

    def visit(self, node: Node) -> Visit:
        """Review the node's path; if more is needed, find the query and retrieve with it (section 3.2)."""
        path, tried = self.tree.paragraphs_to(node), list(dict.fromkeys(one.query for one in self.tree.nodes))
        outcome: ReviewOutcome = self.program.paragraph_review(
            question=self.tree.question, answer_style=self.answer_style, passages=path, tried=tried
        )
        action = outcome.action
        if action == "reject" and not self.settings.relevance_pruning:
            action = "search"
        if action != "search":
            return Visit(outcome, action, "accepted" if action == "accept" else "rejected")
        if stop := self.stop(node):
            return Visit(outcome, action, stop)
        query = self.program.expand(self.tree.question, path, outcome)
        if query is None:
            return Visit(outcome, action, "no query")
        level = min(node.round, len(self.widths()) - 1)
        found = tuple(self.program.search(query, outcome.guess, self.widths()[level]))
        return Visit(outcome, action, None if found else "nothing retrieved", query, found)

    def stop(self, node: Node) -> Ended | None:
        """Return why nothing is searched for from this node; None if something is."""
        return "full depth" if node.round == len(self.widths()) else None

    def record(self, node: Node, visit: Visit) -> Node:
        """Write the review into the node and return it; an accepted node is evidence from now on."""
        return self.tree.update(
            node,
            review=visit.outcome.review,
            action=visit.action,
            answer=visit.outcome.answer if visit.action == "accept" else None,
            next_query=visit.query,
            ended=visit.ended,
        )

    def open(self, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """Open a child for each paragraph found; return those that are not pruned (section 3.4)."""
        level, pruned = 1 if parent is None else parent.round + 1, self.pruning(parent)
        children = [
            self.tree.grow(parent, round=level, query=query, source="passage", passage=passage, ended=pruned(passage))
            for passage in found
        ]
        return [child for child in children if child.ended is None]

    def pruning(self, parent: Node | None) -> Callable[[Passage], Ended | None]:
        """Return what tells why a paragraph opens no path under the parent (section 3.4, repetitive pruning)."""
        known = {passage.id for passage in self.known(parent)} if self.settings.repetitive_pruning else set()
        return lambda passage: "repeated" if passage.id in known else None

    def known(self, parent: Node | None) -> list[Passage]:
        """Return the paragraphs of the path to the parent, and of the evidence pool."""
        return distinct([self.tree.paragraphs_to(parent), *(one.passages for one in evidence_pool(self.tree))])
