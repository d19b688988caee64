"""Branches of SearChain's tree: the nodes that a chain becomes, and those that grow after feedback (AddChild)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from ..common.placeholders import fill_in, numbers_in, unanswered
from ..signatures.chain_of_query import PlannedStep
from .modules.verdict import Verdict, sentence_with
from .tree import Node, ReasoningTree

Help = Literal["correct", "complete", "remember", "revise", "fork"]

_LONGEST_NAME = 6  # words
_YEARS = re.compile(r"(?<=\w) ?\((?:r|b|d|reigned|born|died)\b[.\s\d–-]+\)$")  # in "King Dikkha (r. 1554–56)"
_NAME = re.compile(r"(?<!\w)[A-Z0-9][\w'’-]*(?:[,:]? [A-Z0-9][\w'’-]*)*")


@dataclass(frozen=True)
class Feedback:
    """Feedback from retrieval on a node that needs help; it ends a round.

    Attributes:
        node: the one that needs help.
        help: "correct": a passage contradicts the node's answer. For a node without an answer, "complete": a passage
            has one; "remember": the LM remembers one, which may also replace a guess; "revise": there is none, and the
            rest of the chain is planned anew. "fork": the passages give another answer beside the node's.
        verdict: what the passages say.
    """

    node: Node
    help: Help
    verdict: Verdict


def add_branch(
    tree: ReasoningTree,
    parent: Node | None,
    steps: Sequence[PlannedStep],
    *,
    fills_in: bool,
    round: int = 1,
    replaces: int | None = None,
) -> list[Node]:
    """Add the steps of a chain as nodes, one under the other, and return them (algorithm 1, AddChild).

    Args:
        tree: grows.
        parent: the node that the first step stands under; None for the root.
        steps: the chain.
        fills_in: whether ``#n`` in a query is the answer of the n-th node of the path, and is filled in.
        round: in which the chain was planned.
        replaces: the id of the node whose place the first step takes.
    """
    branch: list[Node] = []
    for planned in steps:
        query = filled_in(tree, parent, planned.query) if fills_in else planned.query
        parent = tree.grow(
            parent,
            query=query,
            template=planned.query if fills_in else None,
            answer=planned.recalled,
            sure=planned.sure,
            source="unsolved" if planned.recalled is None else "lm",
            round=round,
            replaces=None if branch else replaces,
        )
        branch.append(parent)
    return branch


def add_successor(
    tree: ReasoningTree, feedback: Feedback, answer: str | None, round: int, evidence: str | None = None
) -> Node:
    """Add the node that takes the place of the one that got feedback, and return it.

    Args:
        tree: grows.
        feedback: on the node.
        answer: the new answer; None if there still is none.
        round: of the new node.
        evidence: the part of a long answer that the passage holds; no passage holds all of it word for word.
    """
    old, verdict = feedback.node, feedback.verdict
    passage = verdict.passage or old.passage
    in_passage = None if answer is None or feedback.help == "remember" else evidence or answer
    support = sentence_with(in_passage, passage, old.query)
    known = {"complete": "completed", "fork": "completed", "remember": "lm"}
    source = known.get(feedback.help, "corrected" if old.sure else "completed")
    return tree.grow(
        tree.parent(old),
        round=round,
        query=old.query,
        template=old.template,
        answer=answer,
        sure=feedback.help == "remember" and verdict.certain,
        source="unsolved" if answer is None else source,
        span=verdict.span,
        found=old.found,
        read_before=old.read_before,
        passage=passage,
        support=support,
        stance="supports" if support else "silent",
        single_source=old.single_source,
        replaces=None if feedback.help == "fork" else old.id,
    )


def add_filled_in(tree: ReasoningTree, branch: list[Node], feedback: Feedback) -> list[Node]:
    """Add the helped node, and the later ones with the new answer in their queries; return them.

    The recalled answer to a query that has changed is dropped: it answered another query. Where the plan wrote that
    answer into a later query, the step's number takes its place, until the step is answered.
    """
    node, verdict, round = feedback.node, feedback.verdict, next_round(tree)
    later = nodes_after(tree, node, branch)
    helped = last = add_successor(tree, feedback, verdict.answer or verdict.remembered, round)
    regrown, changed = list[Node](), [(node.answer, helped.answer)]
    for old in later:
        template = old.template or old.query
        for before, after in changed:
            template = with_answer(tree, template, before, after)
        step = PlannedStep(query=template, recalled=old.answer, sure=old.sure)
        (last,) = add_branch(tree, last, [step], fills_in=True, round=round)
        regrown.append(last)
        if last.query != old.query:
            changed.append((old.answer, f"#{len(tree.path_to(last))}"))
    for old, new in zip(later, regrown, strict=True):
        if new.query != old.query:
            tree.update(new, answer=None, sure=False, source="unsolved")
    return [helped, *(tree.nodes[node.id] for node in regrown)]


def add_forks(tree: ReasoningTree, branch: list[Node], feedback: Feedback, room: int) -> list[list[Node]]:
    """Add a node beside the helped one for each other answer of the passages, and return their branches.

    If later steps need the answer, the rest of the chain grows under its node, in at most ``room`` branches; further
    answers are not followed.
    """
    node, grown = feedback.node, list[list[Node]]()
    later, number = nodes_after(tree, node, branch), len(tree.path_to(node))
    follows = any(number in numbers_in(step.template or "") for step in later)
    for place, other in enumerate(feedback.verdict.others):
        fork = add_filled_in(tree, branch if follows and place < room else [], Feedback(node, feedback.help, other))
        if follows and place >= room:
            tree.update(fork[0], ended="not followed")
        else:
            grown.append(fork)
    return grown


def told_steps(tree: ReasoningTree, ends: Sequence[Node]) -> list[Node]:
    """Return the steps of the paths to these nodes, level by level; before a step, the failed ones that it replaces."""
    levels = zip_longest(*(tree.path_to(end) for end in ends))
    steps = list[Node]()
    for node in {node.id: node for level in levels for node in level if node}.values():
        failed = [node]
        while failed[0].replaces is not None:
            failed.insert(0, tree.nodes[failed[0].replaces])
        steps += [*(one for one in failed[:-1] if one.query != node.query), node]
    return steps


def nodes_after(tree: ReasoningTree, node: Node, branch: list[Node]) -> list[Node]:
    """Return the nodes of the branch that stand after this one, in their latest state."""
    return [tree.nodes[later.id] for later in branch if later.id > node.id]


def next_round(tree: ReasoningTree) -> int:
    """Return the round of the nodes that grow next."""
    return tree.nodes[-1].round + 1


def refilled(tree: ReasoningTree, node: Node) -> Node:
    """Return the node in its latest state, its query filled in anew: a verdict may have changed an earlier answer."""
    query = filled_in(tree, tree.parent(node), node.template) if node.template else node.query
    return tree.nodes[node.id] if query == node.query else tree.update(node, query=query)


def filled_in(tree: ReasoningTree, parent: Node | None, template: str) -> str:
    """Return a query that is to stand under the parent, with the answers of the path to it.

    Guesses that may be a name are filled in too, as a search without any name finds nothing. If an earlier query has no
    such answer, the query itself is written: it holds names, while a guess of many words only describes.
    """
    path = tree.path_to(parent)
    return fill_in(template, [_name(node) or unanswered(node.query) for node in path])


def _name(node: Node) -> str | None:
    """Return the node's answer in its fuller form, without the years of a reign; None for a long guess."""
    if node.answer is None:
        return None
    name = node.fuller if node.fuller and len(node.fuller.split()) <= _LONGEST_NAME else node.answer
    guess = not (node.sure or node.support)
    return None if guess and len(name.split()) > _LONGEST_NAME else _YEARS.sub("", name)


def with_answer(tree: ReasoningTree, template: str, old: str | None, new: str | None) -> str:
    """Return the query with the new answer in the place of the old one.

    The user's own names stay. A part of a number is not replaced, nor the number of a step (#2), nor a single word
    that lacks the capital of the answer: "us" is not "US".
    """
    names = names_to_keep(tree, old) if old else []
    if not old or not new or old in names:
        return template
    case = "" if len(old.split()) == 1 and not old.islower() else "i"
    written = rf"((?<![\w#<])(?<!\d[.,–-])(?{case}:{re.escape(old)})(?!\w|[.,–-]\d))"
    return re.sub("|".join([*map(re.escape, names), written]), lambda match: new if match[1] else match[0], template)


def names_to_keep(tree: ReasoningTree, answer: str) -> list[str]:
    """Return the names of the question that hold the answer and must stay in the queries when it is replaced.

    These are whole names, such as "Paris, Texas" for "Paris", if queries ask for them: any other "Paris" is then the
    plan's own. If the answer stands in the question outside of these names too, it may be the user's, and is returned.
    """
    whole_answer = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE)
    _, _, after_first_word = tree.question.partition(" ")
    names = [name for name in _NAME.findall(after_first_word) if whole_answer.search(name)]
    queried = [name for name in names if any(name in node.query for node in tree.nodes)]
    rest = re.sub("|".join(map(re.escape, queried)), "", tree.question)
    return [answer] if whole_answer.search(rest) else queried
