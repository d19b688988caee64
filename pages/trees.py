"""A reasoning tree as it is read: the path that led to the answer step by step, and what was given up beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..common.sentences import sentences as split
from ..metrics import agree
from ..programs import Node, ReasoningTree
from ..programs.basis import is_judged, tone_of
from ..programs.tree import without_repeats
from ..programs.tree_views import NodeView, given_up, node_view
from ..retrieval import Passage

Marked = list[tuple[str, bool]]
"""A text in pieces, each with whether it is marked."""


class DrawnStep(NamedTuple):
    """A node as it is drawn.

    Attributes:
        node: itself.
        view: what is said of it.
        tone: a class for how it stands (`tone_of`).
        mark: how its number is drawn: full, half or open.
        source: the number of the reference that is its passage; None if that is not cited, or does not support it.
        passage: the text of its passage, with the supporting sentence marked.
        branches: what was given up at it, each as its steps.
        forgone: the same in a line; empty if nothing was.
    """

    node: Node
    view: NodeView
    tone: str
    mark: str
    source: int | None
    passage: Marked
    branches: Sequence[Sequence[DrawnStep]] = ()
    forgone: str = ""


class Reasoning(NamedTuple):
    """A tree as it is drawn.

    Attributes:
        steps: the path behind the answer, without one the passages that it cites; while sought, the youngest path.
        beside: what was given up and hangs at none of them.
        forgone: the same in a line.
        is_path: whether each step follows from the one before it, so that a line can be drawn.
    """

    steps: Sequence[DrawnStep]
    beside: Sequence[Sequence[DrawnStep]]
    forgone: str
    is_path: bool


def reasoning(tree: ReasoningTree, references: Sequence[Passage] = (), *, growing: bool = False) -> Reasoning:
    """Return a tree as it is drawn.

    Args:
        tree: of a question.
        references: what the answer cites; a step tells the number of its passage.
        growing: whether the answer is still sought.
    """
    numbers = {passage.id: number for number, passage in reversed(list(enumerate(references, start=1)))}
    read = {node.passage.id: node for node in reversed(tree.nodes) if node.passage}
    cited = [read[one.id] for one in references if one.id in read]
    path = tree.last_path() if growing else tree.nodes_behind_answer() or cited
    steps, behind = without_repeats(path), {node.id for node in path}
    under: dict[int | None, list[Node]] = {}
    for node in tree.nodes:
        under.setdefault(node.parent, []).append(node)
    at: dict[int | None, list[list[Node]]] = {}
    hung_at = {None, *behind}
    for root in (node for node in tree.nodes if node.id not in behind and node.parent in hung_at):
        beside = (step.id for step in steps if step.parent == root.parent)
        above = (step.id for step in steps if step.id == root.parent)
        if branch := [node for node in _branch(root, under) if not _asked_anew(node, steps)]:
            at.setdefault(next(beside, next(above, None)), []).append(branch)

    def drawn(node: Node) -> DrawnStep:
        mark = "full" if node.support or is_judged(node) else "half" if node.answer else "open"
        told = node.passage if mark == "full" else None
        shown, source = (passage_marked(told.text, [node.support]), numbers.get(told.id)) if told else ([], None)
        return DrawnStep(node, node_view(node, tree), tone_of(node), mark, source, shown)

    def branches(id: int | None) -> list[list[DrawnStep]]:
        return [[drawn(node) for node in branch] for branch in at.get(id, [])]

    lines = {id: given_up(found) for id, found in at.items()}
    shown = [drawn(one)._replace(branches=branches(one.id), forgone=lines.get(one.id, "")) for one in steps]
    is_path = [node.parent for node in path] == [None, *(node.id for node in path)][:-1]
    return Reasoning(shown, branches(None), lines.get(None, ""), is_path and bool(steps))


def _asked_anew(node: Node, path: Sequence[Node]) -> bool:
    """Return whether a step of the path has the node's answer, or where it has none, its query."""
    same = (agree(node.answer, one.answer or "") if node.answer else node.query == one.query for one in path)
    return not is_judged(node) and any(same)


def _branch(root: Node, under: dict[int | None, list[Node]]) -> list[Node]:
    """Return a node and all below it, each before those under it: without recursion, for a tree may be deep."""
    found, ahead = list[Node](), [root]
    while ahead:
        found.append(node := ahead.pop())
        ahead += reversed(under.get(node.id, []))
    return found


def passage_marked(text: str, sentences: Sequence[str | None]) -> Marked:
    """Return a text in pieces; those are marked that are one of the sentences, or one of several that are joined."""
    pieces: Marked = [(text, False)]
    joined = [one for one in sentences if one and one not in text]
    parts = [part for part in split(text) if any(part in one for one in joined)]
    for sentence in filter(None, [*sentences, *parts]):
        pieces = [part for piece in pieces for part in ([piece] if piece[1] else _cut(piece[0], sentence))]
    return pieces


def _cut(text: str, part: str) -> Marked:
    before, found, after = text.partition(part)
    return [piece for piece in ((before, False), (found, True), (after, False)) if piece[0]]


class StepPair(NamedTuple):
    """A step of two trees side by side.

    Attributes:
        left, right: the step in each; None where it is not asked.
        how: same, differs, follows (the query differs because an earlier answer does), both (asked by two methods, of
            which one judges passages), or only.
    """

    left: DrawnStep | None
    right: DrawnStep | None
    how: str


def aligned(left: Reasoning, right: Reasoning) -> list[StepPair]:
    """Return the steps of two trees in rows: those that were planned alike stand beside each other."""
    waiting, rows, parted = list(right.steps), list[StepPair](), False
    for step in left.steps:
        other = next((one for one in waiting if _planned(one) == _planned(step)), None)
        if other:
            waiting.remove(other)
        how = _difference(step, other, parted=parted) if other else "only"
        parted = parted or how == "differs"
        rows.append(StepPair(step, other, how))
    return rows + [StepPair(None, step, "only") for step in waiting]


def _planned(step: DrawnStep) -> str:
    """Return a step's query as it was planned."""
    return " ".join((step.node.template or step.node.query).casefold().split())


def _difference(left: DrawnStep, right: DrawnStep, *, parted: bool) -> str:
    if is_judged(left.node) != is_judged(right.node):
        return "both"
    if left.view == right.view:
        return "same"
    return "follows" if parted and left.view.asked != right.view.asked else "differs"
