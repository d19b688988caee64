"""Sweeps of alpha, SearChain's threshold for long answers (section 4.1, appendix A.3.1). Theta: readers/calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ...common.errors import QuestreeError
from ...metrics import rouge_l
from ..records import Record


@dataclass(frozen=True)
class AlphaPoint:
    """What alpha would do on stored records of long answers.

    Attributes:
        contradicted: the share of nodes whose answer has a ROUGE-L with its passage of alpha or less.
        left_alone: questions without such a node.
        rouge_l_left_alone: their mean score; None where there are none.
        rouge_l_others: the mean score of the others; None where there are none.
    """

    alpha: float
    nodes: int
    contradicted: float
    left_alone: int
    rouge_l_left_alone: float | None
    rouge_l_others: float | None


def alpha_sweep(records: Sequence[Record], alphas: Sequence[float]) -> list[AlphaPoint]:
    """Where corrections would set in, and whether the answers that are left alone are the better ones.

    It looks at the answers that the LM gave before a passage was shown to it. What another alpha leads to is found
    by running it: ``questree ablate searchain --over alpha --value 0.3 --value 0.4``.

    Raises:
        QuestreeError: if these are no records of long answers, or no node has an answer and a passage.
    """
    long = [record for record in records if record.failure is None and "rouge-l" in record.scores]
    agreements = {record.id: agreed for record in long if (agreed := _agreements(record))}
    if not agreements:
        raise QuestreeError("No answered question here is scored by rouge-l and has nodes with answer and passage.")
    scores = {record.id: record.scores["rouge-l"] for record in long}
    return [_alpha_point(agreements, scores, alpha) for alpha in alphas]


def _agreements(record: Record) -> list[float]:
    """ROUGE-L of answer and passage for each node that retrieval looked at and that was not rewritten."""
    nodes = record.tree.nodes if record.tree else []
    judged = [node for node in nodes if node.replaces is None and node.repeats is None]
    return [rouge_l(node.answer, [node.passage.text]) for node in judged if node.answer and node.passage]


def _alpha_point(agreements: dict[str, list[float]], scores: dict[str, float], alpha: float) -> AlphaPoint:
    nodes = [agreement for agreed in agreements.values() for agreement in agreed]
    alone = [scores[id] for id, agreed in agreements.items() if min(agreed) > alpha]
    others = [scores[id] for id, agreed in agreements.items() if min(agreed) <= alpha]
    return AlphaPoint(
        alpha,
        len(nodes),
        sum(agreement <= alpha for agreement in nodes) / len(nodes),
        len(alone),
        fmean(alone) if alone else None,
        fmean(others) if others else None,
    )
