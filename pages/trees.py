"""A reasoning tree as nested cards, which ``tree.html`` draws, and a passage with its supporting sentence marked."""

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
    """A node with those under it.

    Attributes:
        node: itself.
        view: what is said of it.
        passage: the text of its passage with the supporting sentence marked; None without a passage.
        under: the cards of its children, oldest first.
    """

    node: Node
    view: NodeView
    passage: Marked | None
    under: list[Card]


def cards(tree: ReasoningTree) -> list[Card]:
    """Return the cards at the root of a tree, each with those under it."""
    made = [card(node) for node in tree.nodes]
    for one in made:
        if one.node.parent is not None:
            made[one.node.parent].under.append(one)
    return [one for one in made if one.node.parent is None]


def card(node: Node) -> Card:
    """Return the card of a node by itself, with nothing under it."""
    passage = None if node.passage is None else marked(node.passage.text, node.support)
    return Card(node, node_view(node), passage, [])


def marked(text: str, part: str | None) -> Marked:
    """Return a text with the first place of a part marked; unmarked if there is none."""
    before, found, after = text.partition(part) if part else (text, "", "")
    return Marked(before, found, after)
