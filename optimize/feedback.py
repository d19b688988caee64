"""What an optimizer that reflects is told of an answer: whether it is right, and which steps went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dspy

from ..metrics import normalise
from ..metrics.found_passages import gold_names, names_as
from ..programs.tree import Node, ReasoningTree


def feedback(example: dspy.Example, prediction: Any, right: bool) -> str:
    """Return the verdict on an answer in words, with a line for each step that went wrong.

    Args:
        example: has ``answers`` or ``answer``; without ``gold_passages`` or ``gold_titles`` nothing is said of what was
            found.
        prediction: a program's; None if it gave none.
        right: whether the metric takes the answer.
    """
    if prediction is None:
        return "No answer was given."
    if prediction.get("failure") is not None:
        return f"No answer was given: {prediction.failure}."
    answer, gold = prediction.get("answer"), example.get("answers") or [example.get("answer")]
    verdict = f"The answer {answer!r} is {'right' if right else 'wrong'}; right is {' or '.join(map(repr, gold))}."
    if not right and normalise(str(answer)) in {normalise(str(one)) for one in gold}:  # it asks for more
        verdict = f"The answer {answer!r} is right, but the metric does not accept what was given."
    tree = prediction.get("tree")
    lines = [] if tree is None else [*_steps(tree), *_searches(tree, example), *_citations(tree, prediction)]
    return "\n".join([verdict, *dict.fromkeys(lines)])


def _steps(tree: ReasoningTree) -> Iterator[str]:
    """Yield what passages corrected, and what was not found."""
    for node in tree.nodes:
        old = None if node.replaces is None else tree.nodes[node.replaces].answer
        if old and node.support and old != node.answer:
            yield f"The answer {old!r} to {node.query!r} was wrong: a passage says {node.answer!r}."
        if node.source == "unsolved" and node.stance is not None and not _was_replaced(tree, node):
            yield f"The query {node.query!r} was left without an answer."


def _searches(tree: ReasoningTree, example: dspy.Example) -> Iterator[str]:
    """Yield which queries found no gold passage, and which gold passages no query found."""
    passages, titles = example.get("gold_passages") or [], example.get("gold_titles") or []
    gold = gold_names(passages, titles)
    if not gold:
        return
    found: dict[str, set[str]] = {}
    for node in tree.nodes:
        there = node.found or ([node.passage] if node.passage else [])
        found.setdefault(node.query, set()).update(names_as(there, passages))
    for query, names in found.items():
        if names and names.isdisjoint(gold):
            yield f"The query {query!r} found no passage that the answer needs."
    missing = [name for name in gold if not any(name in names for names in found.values())]
    if missing and passages:  # their names are no words
        yield f"No query found {len(missing)} of the {len(gold)} passages that the answer needs."
    elif missing:
        yield f"No query found the passages {[titles[gold.index(name)] for name in missing]}, which the answer needs."


def _citations(tree: ReasoningTree, prediction: Any) -> Iterator[str]:
    """Yield which answers on the path nothing supports, and whether the content cites nothing that was found."""
    for node in tree.nodes_behind_answer():
        if node.stance == "silent" and node.answer:
            yield f"No passage supports the answer {node.answer!r} to {node.query!r}."
    if not prediction.get("references") and any(node.support for node in tree.nodes):
        yield "The final content cites none of the passages that support its steps."


def _was_replaced(tree: ReasoningTree, node: Node) -> bool:
    return any(other.replaces == node.id for other in tree.nodes)
