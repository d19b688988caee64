"""A reasoning tree as text, as a Mermaid diagram, and as a notebook shows it.

Nodes of a chain of query show where their answer comes from; nodes for a paragraph or a blended query show what was
done with it.
"""

from __future__ import annotations

from textwrap import shorten
from typing import NamedTuple

from ..common.text import in_page, printable
from .tree import Node, ReasoningTree

SOURCES = {
    "lm": ("known by the LM", "#1d6fb8"),
    "corrected": ("corrected from a passage", "#b86a1d"),
    "completed": ("completed from a passage", "#1d8a4a"),
    "unsolved": ("unsolved", "#8a8a8a"),
}
_FATES = {
    "query": ("query", "#7a4fb8"),
    "open": ("found", "#8a8a8a"),
    "search": ("searched on", "#1d6fb8"),
    "accept": ("accepted", "#1d8a4a"),
    "kept": ("kept", "#1d8a4a"),
    "ended": ("ended", "#8a8a8a"),
}


def as_text(tree: ReasoningTree) -> str:
    """Return the tree with box-drawing branches; the nodes behind the answer have ``●``, the others ``○``."""
    behind = _ids_behind_answer(tree)
    lines = [_one_line(tree.question)]

    def draw(parent: Node | None, margin: str) -> None:
        children = tree.children(parent)
        for child in children:
            last = child is children[-1]
            lines.append(f"{margin}{'└─' if last else '├─'}{'●' if child.id in behind else '○'} {node_line(child)}")
            draw(child, margin + ("   " if last else "│  "))

    draw(None, "")
    return "\n".join(lines)


def as_mermaid(tree: ReasoningTree) -> str:
    """Return the tree as a Mermaid flowchart; the nodes behind the answer have solid boxes."""
    behind = _ids_behind_answer(tree)
    lines = ["flowchart TD", f'  root(["{_mermaid(tree.question)}"])']
    for node in tree.nodes:
        label = f"{_mermaid(_asked(node))}<br/><b>{_mermaid(_answer(node))}</b><br/><i>{_state(node)}</i>"
        lines.append(f'  n{node.id}["{label}"]')
        lines.append(f"  {'root' if node.parent is None else f'n{node.parent}'} --> n{node.id}")
    lines += [f"  class n{node.id} {_colour(node) if node.id in behind else 'left'}" for node in tree.nodes]
    lines += [f"  classDef {source} stroke:{colour},stroke-width:2px" for source, (_, colour) in _legend(tree).items()]
    lines.append("  classDef left stroke-dasharray:4 4,opacity:0.6")
    return "\n".join(lines)


def as_fragment(tree: ReasoningTree) -> str:
    """Return the tree with its legend, for a page that has `TREE_STYLE`. Everything in it is escaped."""
    behind = _ids_behind_answer(tree)
    legend = "".join(f"<span class={source}>{words}</span>" for source, (words, _) in _legend(tree).items())
    return f'<p class="legend">{legend}</p><div class="tree root-list">{_branches(tree, None, behind)}</div>'


def _branches(tree: ReasoningTree, parent: Node | None, behind: set[int]) -> str:
    items = "".join(
        f"<li>{_card(node, node.id in behind)}{_branches(tree, node, behind)}</li>" for node in tree.children(parent)
    )
    return f"<ul>{items}</ul>" if items else ""


def _card(node: Node, answers: bool) -> str:
    evidence = ""
    if node.passage is not None:
        read = f"<p>read: <b>{in_page(node.span.text)}</b> ({node.span.score:.2f})</p>" if node.span else ""
        passage = f"<b>{in_page(node.passage.title)}</b> {in_page(node.passage.text)}"
        evidence = f"<details><summary>passage</summary>{read}<p>{passage}</p></details>"
    return (
        f'<div class="{_colour(node)}{"" if answers else " left"}"><small>round {node.round}</small>'
        f"<p>{in_page(_asked(node))}</p><p><b>{in_page(_answer(node))}</b></p>{evidence}</div>"
    )


def _ids_behind_answer(tree: ReasoningTree) -> set[int]:
    return {node.id for node in tree.nodes_behind_answer()}


def node_line(node: Node) -> str:
    """Return a node as one line: what it asks, its answer, what became of it."""
    if _judged(node):
        concluded = f" → {_short(_answer(node))}" if _answer(node) else ""
        return f"{_short(_asked(node))}{concluded}  ({_state(node)})"
    passage = f"  [{_one_line(node.passage.title or node.passage.id)}]" if node.passage else ""
    return f"{_one_line(node.query)} → {_one_line(_answer(node))}  ({_state(node)}){passage}"


def _short(text: str) -> str:
    return shorten(_one_line(text), 80, placeholder=" …")


def _one_line(text: str) -> str:
    """Return the text on one line, so that it cannot draw a branch of its own."""
    return " ".join(printable(text).split())


class NodeView(NamedTuple):
    """What every view of a tree says of a node.

    Attributes:
        kind: a word for a class of styles, one of those of the legend: ``corrected``, ``accept`` …
        state: the same for a reader: "corrected from a passage".
        asked: the query; for a judged paragraph its title.
        answer: what was concluded; "?" for a query without an answer.
    """

    kind: str
    state: str
    asked: str
    answer: str


def node_view(node: Node) -> NodeView:
    """Return what every view of a tree says of a node, as it stands there: not escaped."""
    return NodeView(kind=_colour(node), state=_state(node), asked=_asked(node), answer=_answer(node))


def _judged(node: Node) -> bool:
    """Return whether the node is a paragraph that is reviewed or filtered, or a query without its own answer."""
    return node.source in ("passage", "query") or node.blend is not None


def _asked(node: Node) -> str:
    """Return the query; for a judged paragraph its title, because the query stands at the node that opened it."""
    if _judged(node) and node.passage is not None:
        return node.passage.title or node.passage.id
    return f"{node.blend}: {node.query}" if node.blend else node.query


def _answer(node: Node) -> str:
    if _judged(node):
        return node.answer or node.next_query or ""
    return "?" if node.answer is None else node.answer


def _state(node: Node) -> str:
    if node.ended:
        return node.ended
    state = (_FATES if _judged(node) else SOURCES)[_colour(node)][0]
    return f"{state}; one source contradicts the LM" if node.lone else state


def _colour(node: Node) -> str:
    """Return the class of the node in a diagram or page."""
    if not _judged(node):
        return node.source
    if node.blend or node.source == "query":
        return "query"
    if node.ended == "accepted":
        return "accept"
    return "kept" if node.ended == "kept" else "ended" if node.ended else node.action or "open"


def _legend(tree: ReasoningTree) -> dict[str, tuple[str, str]]:
    """Return the classes of this tree's nodes, with their words and colours."""
    judged = {_judged(node) for node in tree.nodes}
    return (_FATES if True in judged else {}) | (SOURCES if judged != {True} else {})


def _mermaid(text: str) -> str:
    """Return text for a Mermaid label: characters that Mermaid or HTML would interpret become entities."""
    special = '"#<>&;`[]{}()|\\'
    return "".join(f"#{ord(c)};" if c in special else c for c in _one_line(text))


_COLOURS = "".join(f".{source}{{--source:{colour}}}" for source, (_, colour) in (SOURCES | _FATES).items())
TREE_STYLE = f"""
.legend span{{display:inline-block;border-left:4px solid var(--source);padding:0 .8rem 0 .4rem;font-size:.85rem}}
ul.tree,.tree ul{{list-style:none;margin:0;padding-left:1.6rem;border-left:1px solid #8884}}
.tree div{{border-left:4px solid var(--source);background:#8881}}
.tree div{{padding:.4rem .8rem;margin:.5rem 0;border-radius:0 6px 6px 0}}
.tree p{{margin:.2rem 0}} .left{{opacity:.55}} details{{font-size:.9rem}} small{{color:#777;float:right}}
{_COLOURS}"""


def _in_notebook(tree: ReasoningTree) -> str:
    """Return the tree as a notebook shows it. Everything in it is escaped."""
    return f"<style>{TREE_STYLE}</style><p><b>{in_page(tree.question)}</b></p>{as_fragment(tree)}"


# `print(tree)` and a notebook show the tree; tree.py cannot import its views
ReasoningTree.__str__ = as_text  # type: ignore[assignment, method-assign]
ReasoningTree._repr_html_ = _in_notebook
