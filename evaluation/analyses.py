"""The papers' analyses over stored records: no LM is asked. Each returns rows: figures by name.

Means have 95% intervals over questions. Questions that failed are left out: scores are of the answered ones alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..common.errors import QuestreeError
from ..metrics import bootstrap_interval, mean_interval, paired_interval
from ..programs.basis import SOURCES
from .evaluation import Evaluation
from .records import Record

Row = dict[str, Any]


def knowledge_sources(records: Sequence[Record]) -> list[Row]:
    """Return how many nodes on the final paths have each source of knowledge (SearChain, table 2: of those solved)."""
    counts = Counter(source for record in records for source in record.sources if source in SOURCES)
    if not counts:
        raise QuestreeError("No node of this run has an answer of its own; knowledge sources are SearChain's.")
    solved = counts.total() - counts["unsolved"]
    shares = {one: counts[one] / solved for one in SOURCES if solved and one != "unsolved"}
    return [
        {"source": one, "nodes": counts[one], "share": counts[one] / counts.total(), "share_of_solved": shares.get(one)}
        for one in SOURCES
    ]


def helped_by_retrieval(with_: Sequence[Record], without: Sequence[Record], metric: str, *, seed: int = 0) -> Row:
    """Return the score with and without retrieval on S_IR, the questions where it corrected or completed a node.

    ``without`` is over all questions that both runs answered: lower on S_IR if retrieval finds what is hard for the LM
    (SearChain, table 3a).
    """
    pairs = paired(with_, without)
    by = {"corrected", "completed"}
    helped = [pair for pair in pairs if (tree := pair[0].tree) and by & {node.source for node in tree.nodes}]
    if not helped:
        raise QuestreeError("Retrieval corrected or completed no node of the first run: S_IR is empty.")
    after, before = ([_score(record, metric) for record in side] for side in zip(*helped, strict=True))
    return {
        "questions": len(pairs),
        "helped": len(helped),
        "without": mean_interval([_score(other, metric) for _, other in pairs], seed=seed),
        "without_on_helped": mean_interval(before, seed=seed),
        "with_on_helped": mean_interval(after, seed=seed),
        "difference": paired_interval(before, after, seed=seed),
    }


def misled_by_retrieval(
    with_: Sequence[Record], without: Sequence[Record], metric: str, *, right: float = 1.0, seed: int = 0
) -> Row:
    """Return the share of the questions right without retrieval that are wrong with it (SearChain, table 3b).

    Args:
        with_, without, metric, seed: as for `helped_by_retrieval`.
    """
    pairs = paired(with_, without)
    known = [one for one, other in pairs if _score(other, metric) >= right]
    if not known:
        raise QuestreeError(
            f"No answer without retrieval is right ({metric} of {right} or more), so retrieval misled none. "
            "Ask more questions, or lower --right."
        )
    wrong = [float(_score(record, metric) < right) for record in known]
    return {"questions": len(pairs), "right": len(known), "misled": mean_interval(wrong, seed=seed)}


def steps_by_hops(records: Sequence[Record], metric: str, *, seed: int = 0) -> list[Row]:
    """Return reasoning steps and score by the number of facts that a question needs (SearChain, table 4)."""
    groups: dict[int, list[Record]] = {}
    for record in records:
        if record.hops is not None and record.failure is None:
            groups.setdefault(record.hops, []).append(record)
    if not groups:
        raise QuestreeError("None of the answered questions tells how many hops it needs.")
    return [
        {
            "hops": hops,
            "questions": len(group),
            "steps": bootstrap_interval([reasoning_steps(record) for record in group], seed=seed),
            "score": mean_interval([_score(record, metric) for record in group], seed=seed),
        }
        for hops, group in sorted(groups.items())
    ]


def reasoning_steps(record: Record) -> int:
    """Return the number of steps on the longest path behind the answer; 0 if no tree was kept.

    A passage is a step only on a path of passages (ToR); elsewhere it is what the query above it found.
    """
    tree = record.tree
    paths = [tree.path_to(node) for node in tree.nodes_behind_answer()] if tree else []
    return max((len([node for node in path if node.source != "passage"] or path) for path in paths), default=0)


def efficiency(records: Sequence[Record]) -> Row:
    """Return the mean cost of an answered question (SearChain, table 5; ToR, table 5).

    Where the client's cache answered some calls (``cached``), nobody counted their tokens: tokens and cost are None.
    """
    answered = tuple(record for record in records if record.failure is None)
    if not answered:
        raise QuestreeError("Every question of this run failed; there is nothing to measure.")
    found, n = Evaluation("", answered), len(answered)
    spent = found.spent
    return {
        "questions": n,
        "words_in": spent.words_in / n,
        "words_out": spent.words_out / n,
        "rounds": found.rounds,
        "calls": spent.calls / n,
        "seconds": found.seconds,
        "cached": spent.cached / n,
        "tokens": None if spent.cached else (spent.tokens_in + spent.tokens_out) / n,
        "cost": None if spent.cached else spent.cost / n or None,
    }


def paired(first: Sequence[Record], second: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Return the questions that both runs answered, in the order of the first; a failure is not an answer."""
    others = {record.id: record for record in second if record.failure is None}
    pairs = [(record, others[record.id]) for record in first if record.failure is None and record.id in others]
    if not pairs:
        raise QuestreeError("The two runs have no answered question in common; give runs over the same questions.")
    for pair in pairs:
        check_same_question(pair)
    return pairs


def check_same_question(records: Sequence[Record]) -> None:
    """Raise a `QuestreeError` if records of one id have different questions or different gold answers."""
    if len({(record.question, record.gold_answers) for record in records}) > 1:
        raise QuestreeError(
            f"Question {records[0].id!r} was changed between these runs: {records[0].question!r} and "
            f"{records[-1].question!r}, gold {list(records[0].gold_answers)} and {list(records[-1].gold_answers)}. "
            "Evaluate again into the older folder; what is unchanged is not asked again."
        )


def _score(record: Record, metric: str) -> float:
    if metric not in record.scores:
        raise QuestreeError(f"Question {record.id} was not scored by {metric!r}; it has: {', '.join(record.scores)}.")
    return record.scores[metric]
