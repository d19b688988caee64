"""A reasoning tree as text, as a Mermaid diagram, and as a notebook shows it with its prediction and its program.

Nodes of a chain of query show where their answer comes from; nodes for a paragraph or a blended query show what was
done with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import dspy

from ..common.text import in_page, printable
from .basis import is_judged, node_kind, node_state, standing_of
from .tree import Node, ReasoningTree

_BLUE, _BROWN, _GREEN, _GREY, _VIOLET = "#1d6fb8", "#b86a1d", "#1d8a4a", "#8a8a8a", "#7a4fb8"
_STEPS = {"lm": _BLUE, "corrected": _BROWN, "completed": _GREEN, "unsolved": _GREY}
_JUDGED = {"query": _VIOLET, "open": _GREY, "search": _BLUE, "accept": _GREEN, "kept": _GREEN, "ended": _GREY}


def as_text(tree: ReasoningTree) -> str:
    """Return the tree with box-drawing branches; the nodes behind the answer have ``●``, the others ``○``."""
    behind = {node.id for node in tree.nodes_behind_answer()}
    lines = [_one_line(tree.question)]

    def draw(parent: Node | None, margin: str) -> None:
        children = tree.children(parent)
        for child in children:
            last = child is children[-1]
            lines.append(
                f"{margin}{'└─' if last else '├─'}{'●' if child.id in behind else '○'} {node_line(child, tree)}"
            )
            draw(child, margin + ("   " if last else "│  "))

    draw(None, "")
    return "\n".join(lines)


def as_mermaid(tree: ReasoningTree) -> str:
    """Return the tree as a Mermaid flowchart; the nodes behind the answer have solid boxes."""
    behind = {node.id for node in tree.nodes_behind_answer()}
    lines = ["flowchart TD", f'  root(["{_mermaid(tree.question)}"])']
    for node in tree.nodes:
        view = node_view(node, tree)
        label = f"{_mermaid(view.asked)}<br/><b>{_mermaid(view.answer)}</b><br/><i>{_mermaid(view.state)}</i>"
        lines.append(f'  n{node.id}["{label}"]')
        lines.append(f"  {'root' if node.parent is None else f'n{node.parent}'} --> n{node.id}")
    lines += [f"  class n{node.id} {node_kind(node) if node.id in behind else 'left'}" for node in tree.nodes]
    judged = {is_judged(node) for node in tree.nodes}
    colours = (_JUDGED if True in judged else {}) | (_STEPS if judged != {True} else {})
    lines += [f"  classDef {kind} stroke:{colour},stroke-width:2px" for kind, colour in colours.items()]
    lines.append("  classDef left stroke-dasharray:4 4,opacity:0.6")
    return "\n".join(lines)


def node_line(node: Node, tree: ReasoningTree | None = None) -> str:
    """Return a node as one line: its query, its answer, its state."""
    view = node_view(node, tree)
    state = _one_line(view.state)
    if is_judged(node):
        concluded = f" → {_short(view.answer)}" if view.answer else ""
        return f"{_short(view.asked)}{concluded}  ({state})"
    concluded = f" → {_one_line(view.answer)}" if view.answer else ""
    return f"{_one_line(view.asked)}{concluded}  ({state})"


def _short(text: str) -> str:
    return shorten(_one_line(text), 80, placeholder=" …")


def _one_line(text: str) -> str:
    """Return the text on one line, so that it cannot draw a branch of its own."""
    return " ".join(printable(text).split())


class NodeView(NamedTuple):
    """The texts of a node in every view of a tree.

    Attributes:
        kind: the word of the legend that names its style: ``corrected``, ``accept`` …
        state: its state in words: "found in Sweden".
        asked: the query; for a judged paragraph its title.
        answer: what was concluded; "?" for a query without an answer; empty if it only repeats what was asked.
    """

    kind: str
    state: str
    asked: str
    answer: str


def node_view(node: Node, tree: ReasoningTree | None = None) -> NodeView:
    """Return the texts of a node for every view of a tree, not escaped."""
    if not is_judged(node):
        answer = "?" if node.answer is None else node.answer * (node.answer != node.query)  # a fact has nothing new
        return NodeView(node_kind(node), node_state(node, tree), node.query, answer)
    asked = f"{node.blend}: {node.query}" if node.blend else node.query
    if node.passage is not None:  # the query stands at the node that opened it
        asked = node.passage.title or node.passage.id
    return NodeView(node_kind(node), node_state(node, tree), asked, node.answer or node.next_query or "")


def given_up(branches: Sequence[Sequence[Node]]) -> str:
    """Return given-up branches as one line, such as "Verne → Nantes; Bonn", without what was never looked up."""
    distinct = list(dict.fromkeys(filter(None, map(_chain, branches))))
    return "; ".join(distinct[:_MOST]) + f"; {len(distinct) - _MOST} more" * (len(distinct) > _MOST)


_MOST = 6


def _chain(branch: Sequence[Node]) -> str:
    named = [name for node in branch if (name := _short(node_view(node).asked if is_judged(node) else _came_to(node)))]
    return " → ".join(named[:_MOST]) + " …" * (len(named) > _MOST)


def _came_to(node: Node) -> str:
    return node.answer or (f"{node.query} not found" if node.found else "")


def _mermaid(text: str) -> str:
    """Return text for a Mermaid label: characters that Mermaid or HTML would interpret become entities."""
    special = '"#<>&;`[]{}()|\\'
    return "".join(f"#{ord(c)};" if c in special else c for c in _one_line(text))


def in_notebook(tree: ReasoningTree) -> str:
    """Return the tree as a notebook shows it. Everything in it is escaped, as in all that a notebook shows."""
    return f"<pre>{in_page(as_text(tree))}</pre>"


def prediction_in_notebook(prediction: dspy.Prediction) -> str:
    """Return the question, its answer or why there is none, the text with its references, and the tree."""
    tree = prediction.tree
    answer = f"no answer: {prediction.failure}" if prediction.failure else prediction.answer or standing_of(prediction)
    cited = "".join(f"<li>{in_page(passage.cited())}</li>" for passage in prediction.references)
    return (
        f"<p><b>{in_page(tree.question)}</b></p><p>{in_page(str(answer))}</p>"
        f"<p>{in_page(prediction.final_content)}</p><ol>{cited}</ol>{in_notebook(tree)}"
    )


def program_in_notebook(program: Any) -> str:
    """Return a program's name, its settings that are no defaults, and how many demonstrations each predictor has."""
    fields = type(program.settings).model_fields
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    changed = ", ".join(f"{name}={value!r}" for name, value in program.settings if value != defaults[name])
    rows = "".join(
        f"<tr><td>{in_page(path)}</td><td>{in_page(predictor.signature.__name__)}</td><td>{len(predictor.demos)}</td></tr>"
        for path, predictor in program.named_predictors()
    )
    return (
        f"<p><b>{in_page(program.name)}</b> {in_page(changed)}</p><table><thead><tr><th>predictor</th><th>prompt</th>"
        f"<th>demonstrations</th></tr></thead><tbody>{rows}</tbody></table>"
    )


# `print(tree)` and a notebook show the tree; tree.py cannot import its views
ReasoningTree.__str__ = as_text  # type: ignore[assignment, method-assign]
ReasoningTree._repr_html_ = in_notebook
