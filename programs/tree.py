"""The reasoning tree: everything that a program asked, found and concluded, in the order in which it grew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from ..common.text import text_or_none
from ..retrieval import Passage, Span
from ..signatures.verdict import Stance
from .references import without_loose_marks

Source = Literal["lm", "corrected", "completed", "unsolved", "query", "passage"]
Action = Literal["search", "accept", "reject"]
Ended = Literal[
    "accepted",  # its paragraphs answer the question
    "rejected",  # its paragraphs are irrelevant
    "full depth",  # it needs another search, but the tree is as deep as it may be
    "repeated",  # its paragraph is known already
    "near-duplicate",  # its paragraph says the same as a known one
    "no query",  # it needs another search, but the LM wrote no query
    "nothing retrieved",
    "enough agreement",  # not reviewed, because enough pieces of evidence agree
    "out of calls",  # the budget of LM calls was spent
    "kept",  # passed the knowledge filter
    "filtered out",
    "not followed",  # one of several answers of a step, beyond the branches that a chain may have
]


class Review(BaseModel):
    """The LM's judgement of the paragraphs from the root to a node (ToR, section 3.2)."""

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
        answer: the LM's latest answer; None while there is none.
        source: where the answer comes from (SearChain, table 2): the LM itself, the LM corrected by a passage,
            completed from a passage, or still unsolved. "query": a search query without an answer of its own.
            "passage": the node is a paragraph, not a query; its answer is read from the paragraphs of its path
            (ToR), or the paragraph was filtered (BlendFilter) or given to the LM with others.
        span: what the reader found in the passage, and how sure it was.
        sure: whether the LM was sure of the answer that it recalled.
        fuller: the name as it was recalled, if the passage shortens or describes it; it is filled into later queries.
        template: the query as it was planned, with #n for the answer of the n-th step.
        found: the passages that were retrieved for the query, best first.
        read_before: whether they are of earlier queries: nothing was searched for (SearChain).
        passage: the one of them that was read, or that supports the answer.
        support: the sentence of the passage that holds the answer; None if no passage supports it. A step is cited
            only if it has one.
        stance: what the passages say of the recalled answer; None if they were not asked.
        single_source: whether only one passage, or copies of it, contradicts what the LM recalled (SearChain). Such a
            passage may lie.
        replaces: id of the node whose place it takes on the path, after a correction or completion, or with another
            query after one that found nothing.
        repeats: id of the earlier node with the same query, whose passage it shares.
        review: of the paragraphs on its path (ToR).
        action: what follows from the review.
        next_query: the query of the search that it opened.
        ended: why its branch ends here; None while it continues.
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
    sure: bool = False
    fuller: str | None = None
    template: str | None = None
    found: tuple[Passage, ...] = ()
    read_before: bool = False
    passage: Passage | None = None
    support: str | None = None
    stance: Stance | None = None
    single_source: bool = False
    replaces: int | None = None
    repeats: int | None = None
    review: Review | None = None
    action: Action | None = None
    next_query: str | None = None
    ended: Ended | None = None
    blend: Literal["original", "external", "internal"] | None = None


class ReasoningTree(BaseModel):
    """The tree of one question, its branches in the order in which they grew.

    ``model_dump_json()`` writes it as JSON and ``model_validate_json(text)`` reads it without loss; ``tree_views``
    prints it.
    """

    question: str
    nodes: list[Node] = Field(default_factory=list)
    _repr_html_: ClassVar[Callable[[ReasoningTree], str]]
    _watch: Callable[[ReasoningTree, Node, bool], None] | None = PrivateAttr(default=None)

    @field_validator("nodes")
    @classmethod
    def _is_a_tree(cls, nodes: list[Node]) -> list[Node]:
        """Return nodes that are read, each of which stands below one before it."""
        for place, node in enumerate(nodes):
            if node.id != place or not (node.parent is None or 0 <= node.parent < place):
                raise ValueError(f"node {place} has the id {node.id} and the parent {node.parent}")
        return nodes

    def watched_by(self, watch: Callable[[ReasoningTree, Node, bool], None] | None) -> ReasoningTree:
        """Call ``watch`` with each node that has grown (True) or changed (False) from now on; return the tree."""
        self._watch = watch
        return self

    def grow(self, parent: Node | None, **fields: Any) -> Node:
        """Add a node under ``parent`` (None: at the root) and return it. ``fields`` are those of `Node`.

        An answer that says that there is none, such as unknown, leaves the node unsolved.
        """
        node = Node(id=len(self.nodes), parent=None if parent is None else parent.id, **_settled(fields))
        self.nodes.append(node)
        if self._watch is not None:
            self._watch(self, node, True)
        return node

    def add_search(
        self,
        parent: Node | None,
        query: str,
        found: list[Passage],
        kept: list[Passage] | None = None,
        source: Source = "query",
        **fields: Any,
    ) -> Node:
        """Add a query with the passages that it found below it; return the query's node.

        ``kept`` are the passages that the LM is shown, None for all. ``source`` and ``fields`` are those of the query.
        If they do not tell its round, it is the one after its parent's.
        """
        fields = {"round": 1 if parent is None else parent.round + 1, **fields}
        node = self.grow(parent, query=query, source=source, **fields)
        shown = {passage.id for passage in (found if kept is None else kept)}
        for passage in found:
            ended: Ended = "kept" if passage.id in shown else "filtered out"
            self.grow(node, round=node.round, query=query, source="passage", passage=passage, ended=ended)
        return node

    def graft(self, branch: ReasoningTree) -> None:
        """Add the nodes of another tree at the root of this one."""
        first = len(self.nodes)

        def moved(id: int | None) -> int | None:
            return None if id is None else first + id

        for node in branch.nodes:
            fields = dict(node) | {"replaces": moved(node.replaces), "repeats": moved(node.repeats)}
            del fields["id"], fields["parent"]
            self.grow(None if node.parent is None else self.nodes[first + node.parent], **fields)

    def update(self, node: Node, **changes: Any) -> Node:
        """Put a changed copy of ``node`` in its place and return it; an answer is read as `grow` does."""
        self.nodes[node.id] = changed = self.nodes[node.id].model_copy(update=_settled(changes))
        if self._watch is not None:
            self._watch(self, changed, False)
        return changed

    def children(self, node: Node | None) -> list[Node]:
        """Return the nodes under ``node``, oldest first; for None, those at the root."""
        parent = None if node is None else node.id
        return [child for child in self.nodes if child.parent == parent]

    def parent(self, node: Node) -> Node | None:
        """Return the node above ``node``; None at the root."""
        return None if node.parent is None else self.nodes[node.parent]

    def path_to(self, node: Node | None) -> list[Node]:
        """Return the nodes from the root to ``node``, both included; none for None."""
        path: list[Node] = []
        while node is not None:
            path.append(node)
            node = None if node.parent is None else self.nodes[node.parent]
        return path[::-1]

    def paragraphs_to(self, node: Node | None) -> list[Passage]:
        """Return the passage of each node from the root to ``node`` that has one."""
        return [step.passage for step in self.path_to(node) if step.passage is not None]

    def last_path(self) -> list[Node]:
        """Return the path to the youngest node: the reasoning after the last round."""
        return self.path_to(self.nodes[-1]) if self.nodes else []

    def nodes_behind_answer(self) -> list[Node]:
        """Return the nodes of every path that was accepted or kept; if no path has ended, of the last path."""
        paths = [self.path_to(node) for node in self.nodes if node.ended in ("accepted", "kept")]
        if not any(node.ended for node in self.nodes):
            paths = [self.last_path()]
        return list({node.id: node for path in paths for node in path}.values())

    def passages(self) -> list[Passage]:
        """Return every passage of the tree once, in the order in which they were found."""
        found = [passage for node in self.nodes for passage in (node.found or (node.passage,)) if passage is not None]
        return list({passage.id: passage for passage in found}.values())


def _settled(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a node's fields. An answer that says that there is none is taken out, and leaves the node unsolved."""
    answer = fields.get("answer")
    if answer is None or text_or_none(without_loose_marks(answer, 0)) is not None:
        return fields
    known = fields.get("source") in ("lm", "corrected", "completed")
    return fields | {"answer": None} | ({"source": "unsolved"} if known else {})


def without_repeats(path: list[Node]) -> list[Node]:
    """Return the path without the nodes that repeat another one of it: each query is told once (algorithm 1)."""
    ids = {node.id for node in path} | {node.replaces for node in path}
    return [node for node in path if node.repeats is None or node.repeats not in ids]
