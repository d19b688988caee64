"""Branches of SearChain's tree: how a chain grows in it, and on from a node that was helped (algorithm 1, AddChild)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..common.placeholders import fill_in, unanswered
from ..signatures.chain_of_query import PlannedStep
from .modules.verdict import Verdict, sentence_with
from .tree import Node, ReasoningTree

_LONGEST_NAME = 6  # words
_NAME = re.compile(r"(?<!\w)[A-Z0-9][\w'’-]*(?:[,:]? [A-Z0-9][\w'’-]*)*")


@dataclass(frozen=True)
class Feedback:
    """What retrieval has to say about one node; it ends a round.

    Attributes:
        node: the one that needs help.
        kind: its answer is contradicted; or, for a node that has none, found, remembered, or not found.
        verdict: what the passages say.
    """

    node: Node
    kind: Literal["correct", "complete", "remember", "revise"]
    verdict: Verdict


def grow_branch(
    tree: ReasoningTree,
    parent: Node | None,
    steps: list[PlannedStep],
    round: int,
    *,
    fill: bool = True,
    replaces: int | None = None,
) -> list[Node]:
    """Return the steps as new nodes under the parent (algorithm 1, AddChild).

    Args:
        tree: grows.
        parent: of the first node; None for the root.
        steps: of the LM.
        round: of the new nodes.
        fill: whether earlier answers are filled in where a query refers to them by number.
        replaces: the node whose place the first one takes, if any.
    """
    branch: list[Node] = []
    for step in steps:
        parent = tree.grow(
            parent,
            round=round,
            query=filled_in(tree, parent, step.query) if fill else step.query,
            template=step.query if fill else None,
            answer=step.recalled,
            sure=step.sure,
            source="unsolved" if step.recalled is None else "lm",
            replaces=None if branch else replaces,
        )
        branch.append(parent)
    return branch


def regrow(tree: ReasoningTree, parent: Node, later: list[Node], *, instead_of: str | None, round: int) -> list[Node]:
    """Return the later nodes anew under the parent, with its answer in their queries.

    What was recalled for a query that has changed is dropped: it was the answer to another one. Where a later query was
    written out with it, its number stands there, until its query is answered.

    Args:
        tree: grows.
        parent: the node whose answer has changed.
        later: the nodes that stood after it.
        instead_of: the answer that it had: a query that was written out with it gets the new one.
        round: of the new nodes.
    """
    branch, last, changed = list[Node](), parent, [(instead_of, parent.answer)]
    for node in later:
        template = node.template or node.query
        for before, after in changed:
            template = replaced(tree, template, before, after)
        (last,) = grow_branch(tree, last, [PlannedStep(query=template, recalled=node.answer, sure=node.sure)], round)
        branch.append(last)
        if last.query != node.query:
            changed.append((node.answer, f"#{len(tree.path_to(last))}"))
    for old, new in zip(later, branch, strict=True):
        if new.query != old.query:
            tree.update(new, answer=None, sure=False, source="unsolved")
    return [tree.nodes[node.id] for node in branch]


def grow_successor(
    tree: ReasoningTree, feedback: Feedback, answer: str | None, round: int, evidence: str | None = None
) -> Node:
    """Return the node that takes the place of the one that got feedback, with its new answer.

    Args:
        tree: that grows.
        feedback: on the old node.
        answer: the new one; None where there is still none.
        round: of the chain.
        evidence: what the passage holds of a long answer, which no passage holds word for word.
    """
    old, verdict = feedback.node, feedback.verdict
    passage = verdict.passage or old.passage
    support = None
    if answer is not None and passage is not None and feedback.kind != "remember":
        support = sentence_with(evidence or answer, passage, old.query)
    source = {"complete": "completed", "remember": "lm"}.get(feedback.kind, "corrected" if old.sure else "completed")
    return tree.grow(
        tree.parent(old),
        round=round,
        query=old.query,
        template=old.template,
        answer=answer,
        sure=feedback.kind == "remember" and verdict.certain,
        source="unsolved" if answer is None else source,
        span=verdict.span,
        found=old.found,
        passage=passage,
        support=support,
        stance="supports" if support else "silent",
        single_source=old.single_source,
        replaces=old.id,
    )


def filled_in(tree: ReasoningTree, parent: Node | None, template: str) -> str:
    """Return a query that is to stand under the parent, with the answers of the path to it.

    Guesses that may be a name are filled in too: a search without any name finds nothing. For an earlier query without
    such an answer, the query itself is written: it holds names, where a guess of many words only describes.
    """
    path = tree.path_to(parent)
    return fill_in(template, [_name(node) or unanswered(node.query) for node in path])


def _name(node: Node) -> str | None:
    """Return the node's answer, unless it is a guess that is too long for a name."""
    guess = node.answer is not None and not (node.sure or node.support)
    return None if guess and len(str(node.answer).split()) > _LONGEST_NAME else node.answer


def refilled(tree: ReasoningTree, node: Node) -> Node:
    """Return the node with its query as it reads by now: a verdict may have settled an earlier answer since it grew."""
    query = filled_in(tree, tree.parent(node), node.template) if node.template else node.query
    return tree.nodes[node.id] if query == node.query else tree.update(node, query=query)


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
    plan's own. If the question has the answer elsewhere too, that may be the user's, and the answer itself is returned.
    """
    said = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE)
    _, _, after_first_word = tree.question.partition(" ")
    names = [name for name in _NAME.findall(after_first_word) if said.search(name)]
    asked = [name for name in names if any(name in node.query for node in tree.nodes)]
    rest = re.sub("|".join(map(re.escape, asked)), "", tree.question)
    return [answer] if said.search(rest) else asked
