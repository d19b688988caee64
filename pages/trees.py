"""A reasoning tree as cards, which ``tree.html`` draws, and a passage with its supporting sentence marked."""

from __future__ import annotations

from typing import NamedTuple

from ..programs import Node, ReasoningTree
from ..programs.tree_views import NodeView, node_view


class Marked(NamedTuple):
    """A text with one part of it marked; without a part, all of it is ``before``."""

    before: str
    part: str = ""
    after: str = ""


class Card(NamedTuple):
    """A node as it is drawn.

    Attributes:
        node: itself.
        view: what is said of it.
        passage: the text of its passage with the supporting sentence marked; None without a passage.
        ends: how many lists end after it: the one under it, if nothing stands there, and those that it is the last of.
    """

    node: Node
    view: NodeView
    passage: Marked | None
    ends: int = 1


def cards(tree: ReasoningTree) -> list[Card]:
    """Return the cards of a tree in the order in which they are drawn: each before those under it, oldest first.

    They are not nested: a tree may be deeper than Python, or a template, may call itself.
    """
    under: dict[int | None, list[Node]] = {}
    for node in reversed(tree.nodes):
        under.setdefault(node.parent, []).append(node)
    drawn, depths = list[Card](), list[int]()
    ahead = [(node, 0) for node in under.get(None, [])]
    while ahead:
        node, depth = ahead.pop()
        drawn.append(card(node, tree))
        depths.append(depth)
        ahead += [(child, depth + 1) for child in under.get(node.id, [])]
    following = [*depths[1:], 0]
    return [one._replace(ends=depth + 1 - after) for one, depth, after in zip(drawn, depths, following, strict=False)]


def card(node: Node, tree: ReasoningTree | None = None) -> Card:
    """Return the card of a node by itself, with nothing under it."""
    passage = None if node.passage is None else marked(node.passage.text, node.support)
    return Card(node, node_view(node, tree), passage)


def marked(text: str, part: str | None) -> Marked:
    """Return a text with the first place of a part marked; unmarked if there is none."""
    before, found, after = text.partition(part) if part else (text, "", "")
    return Marked(before, found, after)
