"""What the baselines share: a retriever if they search, frozen settings, and searches as nodes of the tree."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from ...retrieval import Passage, Retriever
from ..program import Program
from ..tree import Ended, Node, ReasoningTree


class BaselineSettings(BaseModel):
    """No settings; those of each baseline add their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Baseline(Program):
    """A baseline. It takes a retriever like any program, and does not keep it if it does not search.

    Args:
        retriever: finds the passages.
        settings: those of this baseline.
    """

    Settings = BaselineSettings

    def __init__(self, retriever: Retriever | None = None, settings: BaselineSettings | None = None):
        super().__init__(retriever if self.searches else None, settings or self.Settings())


def add_search(
    tree: ReasoningTree,
    parent: Node | None,
    query: str,
    found: list[Passage],
    kept: list[Passage] | None = None,
    **fields: Any,
) -> Node:
    """Add a query to the tree, with the passages that it found below it; return the query's node.

    Args:
        tree: grows.
        parent: the query before it.
        query: what was searched for.
        found: its passages.
        kept: those of them that the LM is shown; None for all.
        fields: others of the query's `Node`.
    """
    node = tree.grow(parent, query=query, **fields)
    shown = {passage.id for passage in (found if kept is None else kept)}
    for passage in found:
        ended: Ended = "kept" if passage.id in shown else "filtered out"
        tree.grow(node, round=node.round, query=query, source="passage", passage=passage, ended=ended)
    return node
