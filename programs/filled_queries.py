"""Queries of SearChain's plan, filled in: answers in the place of numbers, and new answers in the place of old ones."""

from __future__ import annotations

import re

from ..common.placeholders import fill_in, unanswered
from .tree import Node, ReasoningTree

_LONGEST_NAME = 6  # words
_YEARS = re.compile(r"(?<=\w) ?\((?:r|b|d|reigned|born|died)\b[.\s\d–-]+\)$")  # in "King Dikkha (r. 1554–56)"
_NAME = re.compile(r"(?<!\w)[A-Z0-9][\w'’-]*(?:[,:]? [A-Z0-9][\w'’-]*)*")


def filled_in(tree: ReasoningTree, parent: Node | None, template: str) -> str:
    """Return a query that is to stand under the parent, with the answers of the path to it.

    Guesses that may be a name are filled in too: a search without any name finds nothing. For an earlier query without
    such an answer, the query itself is written: it holds names, where a guess of many words only describes.
    """
    path = tree.path_to(parent)
    return fill_in(template, [_name(node) or unanswered(node.query) for node in path])


def _name(node: Node) -> str | None:
    """Return the node's answer in its fuller form, without the years of a reign; none for a long guess."""
    if node.answer is None:
        return None
    name = node.fuller if node.fuller and len(node.fuller.split()) <= _LONGEST_NAME else node.answer
    guess = not (node.sure or node.support)
    return None if guess and len(name.split()) > _LONGEST_NAME else _YEARS.sub("", name)


def replaced(tree: ReasoningTree, template: str, old: str | None, new: str | None) -> str:
    """Return the query with an answer that was written into it replaced by another one; the user's names stay.

    Part of a number is no answer, nor is the number of a step (#2), nor a single word without the capital that the
    answer has: "us" is not "US".
    """
    names = names_to_keep(tree, old) if old else []
    if not old or not new or old in names:
        return template
    case = "" if len(old.split()) == 1 and not old.islower() else "i"
    written = rf"((?<![\w#<])(?<!\d[.,–-])(?{case}:{re.escape(old)})(?!\w|[.,–-]\d))"
    return re.sub("|".join([*map(re.escape, names), written]), lambda found: new if found[1] else found[0], template)


def names_to_keep(tree: ReasoningTree, answer: str) -> list[str]:
    """Return the names of the question that hold the answer and must stay in the queries when it is replaced.

    These are whole names, such as "Paris, Texas" for "Paris", if queries ask for them: any other "Paris" is then the
    plan's own. If the answer stands in the question outside of these names too, it may be the user's, and is returned.
    """
    said = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE)
    _, _, after_first_word = tree.question.partition(" ")
    names = [name for name in _NAME.findall(after_first_word) if said.search(name)]
    asked = [name for name in names if any(name in node.query for node in tree.nodes)]
    rest = re.sub("|".join(map(re.escape, asked)), "", tree.question)
    return [answer] if said.search(rest) else asked
