"""The reasoning tree: everything that a program asked, found and concluded, in the order in which it grew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from ..retrieval import Passage, Span

Source = Literal["lm", "corrected", "completed", "unsolved", "query", "passage"]
Action = Literal["search", "accept", "reject"]
Ended = Literal[
    "accepted",  # its paragraphs answer the question
    "rejected",  # its paragraphs are irrelevant
    "full depth",  # it would search on, but the tree is deep enough
    "repeated",  # its paragraph is known already
    "near-duplicate",  # its paragraph says what a known one says
    "no query",  # it would search on, but the LM wrote no query
    "nothing retrieved",
    "enough agreement",  # so many pieces of evidence agree that it was not looked at
    "out of calls",  # the budget of LM calls was spent
    "kept",  # passed the knowledge filter
    "filtered out",
]


class Review(BaseModel):
    """What the LM made of the paragraphs from the root to a node (ToR, section 3.2)."""

    model_config = ConfigDict(frozen=True)

    relevant: bool
    supported: bool
    thoughts: str | None = None


class Node(BaseModel):
    """One step of reasoning.

    Attributes:
        id: its place in ``ReasoningTree.nodes``.
        parent: id of the node before it on its path; None at the beginning of a path.
        round: the round of interaction in which it grew, from 1.
        query: what it asks.
        answer: the LM's answer, the latest one; None while there is none.
        source: where the answer comes from (SearChain, table 2): the LM itself, the LM corrected by a passage,
            completed from a passage, or still unsolved. "query": it was searched for, and has no answer of its
            own. "passage": the node is a paragraph, not a query, and its answer is read from the paragraphs of its
            path (ToR), or it is one that was filtered (BlendFilter) or given to the LM with others.
        span: what the reader found in the passage, and how sure it was.
        passage: the passage that was retrieved for the query.
        replaces: id of the node whose place it takes on the path, after a correction or completion.
        repeats: id of the earlier node that asked the same, whose passage it shares.
        review: of the paragraphs on its path (ToR).
        action: what the review led to.
        next_query: what the search that it opened asked for.
        ended: why its branch ends here; None while it goes on.
        blend: which of BlendFilter's queries it is.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    parent: int | None = None
    round: int = 1
    query: str
    answer: str | None = None
    source: Source = "unsolved"
    span: Span | None = None
    passage: Passage | None = None
    replaces: int | None = None
    repeats: int | None = None
    review: Review | None = None
    action: Action | None = None
    next_query: str | None = None
    ended: Ended | None = None
    blend: Literal["original", "external", "internal"] | None = None


class ReasoningTree(BaseModel):
    """The tree of one question. Branches stand in the order in which they grew; JSON in and out without loss.

    ``model_dump_json()`` and ``model_validate_json(text)`` are its JSON; ``rendering`` prints it.
    """

    question: str
    nodes: list[Node] = Field(default_factory=list)
    _watch: Callable[[ReasoningTree], None] | None = PrivateAttr(default=None)

    def watched_by(self, watch: Callable[[ReasoningTree], None] | None) -> ReasoningTree:
        """The same tree, which from now on calls ``watch`` each time it changes."""
        self._watch = watch
        return self

    def grow(self, parent: Node | None, **fields: Any) -> Node:
        """Add a node under ``parent`` (None: at the root). ``fields`` are those of `Node`."""
        node = Node(id=len(self.nodes), parent=None if parent is None else parent.id, **fields)
        self.nodes.append(node)
        self._changed()
        return node

    def update(self, node: Node, **changes: Any) -> Node:
        """Put a changed copy of ``node`` in its place and return it."""
        self.nodes[node.id] = self.nodes[node.id].model_copy(update=changes)
        self._changed()
        return self.nodes[node.id]

    def children(self, node: Node | None) -> list[Node]:
        """The nodes under ``node``, oldest first; of None, those at the root."""
        parent = None if node is None else node.id
        return [child for child in self.nodes if child.parent == parent]

    def path_to(self, node: Node | None) -> list[Node]:
        """The nodes from the root to ``node``, both ends included; empty for None."""
        path: list[Node] = []
        while node is not None:
            path.append(node)
            node = None if node.parent is None else self.nodes[node.parent]
        return path[::-1]

    def last_path(self) -> list[Node]:
        """The path that ends in the youngest leaf: the reasoning as it stands after the last round."""
        return self.path_to(self.nodes[-1]) if self.nodes else []

    def told(self) -> list[Node]:
        """The nodes behind the answer: every path that was accepted or kept; else the last path."""
        paths = [self.path_to(node) for node in self.nodes if node.ended in ("accepted", "kept")]
        if not any(node.ended for node in self.nodes):
            paths = [self.last_path()]
        return list({node.id: node for path in paths for node in path}.values())

    def passages(self) -> list[Passage]:
        """Every passage of the tree, each once, in the order in which they were found."""
        return list({node.passage.id: node.passage for node in self.nodes if node.passage}.values())

    def _changed(self) -> None:
        if self._watch is not None:
            self._watch(self)
