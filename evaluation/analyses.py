"""The papers' analyses, over stored records: no LM is asked.

Means have 95% intervals over questions. Questions that failed are left out: scores are of the answered
ones alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..common.errors import QuestreeError
from ..metrics import Interval, bootstrap_interval, mean_interval, paired_interval, rouge_l
from ..programs.basis import SOURCES
from .evaluation import Evaluation
from .records import Record


@dataclass(frozen=True)
class SourceShare:
    """The nodes whose answer comes from one source: their share of all nodes, and of those with an answer (paper)."""

    source: str
    nodes: int
    share: float
    share_of_solved: float | None


def knowledge_sources(records: Sequence[Record]) -> list[SourceShare]:
    """Return where the answers of the nodes on the final paths come from (SearChain, table 2).

    Raises:
        QuestreeError: if no node of the run answers a query.
    """
    counts = Counter(source for record in records for source in record.sources if source in SOURCES)
    if not counts:
        raise QuestreeError("No node of this run has an answer of its own; knowledge sources are SearChain's.")
    solved = Counter({source: counts[source] for source in SOURCES if source != "unsolved"})
    shares = {source: count / solved.total() for source, count in solved.items() if solved.total()}
    return [SourceShare(one, counts[one], counts[one] / counts.total(), shares.get(one)) for one in SOURCES]


@dataclass(frozen=True)
class Helped:
    """The effect of retrieval on the questions that it intervenes in (SearChain, table 3a).

    Attributes:
        questions: S, the questions that both runs answered.
        helped: S_IR, those in which retrieval corrected or completed a node.
        without: the score without retrieval, over S.
        without_on_helped: the same over S_IR; lower than ``without`` if retrieval finds what is hard for the LM.
        with_on_helped: the score with retrieval, over S_IR.
        difference: of the last two, paired.
    """

    questions: int
    helped: int
    without: Interval
    without_on_helped: Interval
    with_on_helped: Interval
    difference: Interval


def helped_by_retrieval(with_: Sequence[Record], without: Sequence[Record], metric: str, *, seed: int = 0) -> Helped:
    """Return the score on the questions that retrieval intervened in, with it and without it.

    Args:
        with_: records of the program with retrieval, with their trees.
        without: records over the same questions, without retrieval.
        metric: that both were scored by.
        seed: of the intervals.

    Raises:
        QuestreeError: if the runs share no question, or none has a corrected or completed node.
    """
    pairs = paired(with_, without)
    helped = [(one, other) for one, other in pairs if _was_helped(one)]
    if not helped:
        raise QuestreeError("Retrieval corrected or completed no node of the first run: S_IR is empty.")
    after, before = ([_score(record, metric) for record in side] for side in zip(*helped, strict=True))
    return Helped(
        len(pairs),
        len(helped),
        mean_interval([_score(other, metric) for _, other in pairs], seed=seed),
        mean_interval(before, seed=seed),
        mean_interval(after, seed=seed),
        paired_interval(before, after, seed=seed),
    )


@dataclass(frozen=True)
class Misled:
    """The questions at which retrieval made the LM give up a right answer (SearChain, table 3b).

    Attributes:
        questions: those that both runs answered.
        right: S_t, those that were right without retrieval.
        misled: the share of S_t that is wrong with retrieval.
    """

    questions: int
    right: int
    misled: Interval


def misled_by_retrieval(
    with_: Sequence[Record], without: Sequence[Record], metric: str, *, right: float = 1.0, seed: int = 0
) -> Misled:
    """Return the share of the questions right without retrieval that are wrong with it.

    Args:
        with_, without, metric, seed: as for `helped_by_retrieval`.
        right: the score from which an answer counts as right.

    Raises:
        QuestreeError: if the runs share no question, or none was right without retrieval.
    """
    pairs = paired(with_, without)
    known = [one for one, other in pairs if _score(other, metric) >= right]
    if not known:
        raise QuestreeError(
            f"No answer without retrieval is right ({metric} of {right} or more), so retrieval misled none. "
            "Ask more questions, or lower --right."
        )
    wrong = [float(_score(record, metric) < right) for record in known]
    return Misled(len(pairs), len(known), mean_interval(wrong, seed=seed))


@dataclass(frozen=True)
class Steps:
    """The reasoning steps and the score of the questions that need the same number of facts (SearChain, table 4)."""

    hops: int
    questions: int
    steps: Interval
    score: Interval


def steps_by_hops(records: Sequence[Record], metric: str, *, seed: int = 0) -> list[Steps]:
    """Return the length of the reasoning behind the answer, by the number of facts that a question needs.

    Raises:
        QuestreeError: if no answered question has a number of hops.
    """
    groups: dict[int, list[Record]] = {}
    for record in records:
        if record.hops is not None and record.failure is None:
            groups.setdefault(record.hops, []).append(record)
    if not groups:
        raise QuestreeError("None of the answered questions tells how many hops it needs.")
    return [
        Steps(
            hops,
            len(group),
            bootstrap_interval([reasoning_steps(record) for record in group], seed=seed),
            mean_interval([_score(record, metric) for record in group], seed=seed),
        )
        for hops, group in sorted(groups.items())
    ]


def reasoning_steps(record: Record) -> int:
    """Return the number of steps on the longest path behind the answer; 0 if no tree was kept.

    A passage is a step only on a path of passages (ToR); elsewhere it is what the query above it found.
    """
    tree = record.tree
    paths = [tree.path_to(node) for node in tree.nodes_behind_answer()] if tree else []
    return max((len([node for node in path if node.source != "passage"] or path) for path in paths), default=0)


@dataclass(frozen=True)
class Efficiency:
    """The mean cost of a question (SearChain, table 5; ToR, table 5).

    Attributes:
        cached: calls that the client's cache answered.
        tokens, cost: None if there are such calls, as nobody counted theirs; the cost also if no price is known.
    """

    questions: int
    words_in: float
    words_out: float
    rounds: float
    calls: float
    seconds: float
    cached: float
    tokens: float | None
    cost: float | None


def efficiency(records: Sequence[Record]) -> Efficiency:
    """Return the mean words, rounds of interaction, LM calls, seconds, tokens and US dollars of an answered question.

    Raises:
        QuestreeError: if no question was answered.
    """
    answered = tuple(record for record in records if record.failure is None)
    if not answered:
        raise QuestreeError("Every question of this run failed; there is nothing to measure.")
    found, n = Evaluation("", answered), len(answered)
    spent = found.spent
    each = {name: getattr(spent, name) / n for name in ("words_in", "words_out", "calls", "cached")}
    tokens, cost = ((spent.tokens_in + spent.tokens_out) / n, spent.cost / n or None)
    known = {"tokens": None, "cost": None} if spent.cached else {"tokens": tokens, "cost": cost}
    return Efficiency(questions=n, rounds=found.rounds, seconds=found.seconds, **each, **known)


def paired(first: Sequence[Record], second: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Return the questions that both runs answered, in the order of the first; a failure is not an answer.

    Raises:
        QuestreeError: if there are none, or a question of one id differs between the runs.
    """
    others = {record.id: record for record in second if record.failure is None}
    pairs = [(record, others[record.id]) for record in first if record.failure is None and record.id in others]
    if not pairs:
        raise QuestreeError("The two runs have no answered question in common; give runs over the same questions.")
    for pair in pairs:
        check_same_question(pair)
    return pairs


def check_same_question(records: Sequence[Record]) -> None:
    """Refuse records of one id that are of different questions, or were scored by different gold answers.

    Raises:
        QuestreeError: names the question.
    """
    if len({(record.question, record.answers) for record in records}) > 1:
        raise QuestreeError(
            f"Question {records[0].id!r} was changed between these runs: {records[0].question!r} and "
            f"{records[-1].question!r}, gold {list(records[0].answers)} and {list(records[-1].answers)}. "
            "Evaluate again into the older folder; what is unchanged is not asked again."
        )


def _was_helped(record: Record) -> bool:
    return record.tree is not None and any(node.source in ("corrected", "completed") for node in record.tree.nodes)


def _score(record: Record, metric: str) -> float:
    if metric not in record.scores:
        raise QuestreeError(f"Question {record.id} was not scored by {metric!r}; it has: {', '.join(record.scores)}.")
    return record.scores[metric]


@dataclass(frozen=True)
class AlphaPoint:
    """The effect that alpha would have on stored records of long answers.

    Attributes:
        contradicted: the share of nodes whose answer and passage have a ROUGE-L of alpha or less.
        left_alone: the number of questions without such a node.
        rouge_l_left_alone, rouge_l_others: the mean score of these questions, and of the others; None if there are
            none.
    """

    alpha: float
    nodes: int
    contradicted: float
    left_alone: int
    rouge_l_left_alone: float | None
    rouge_l_others: float | None


def alpha_sweep(records: Sequence[Record], alphas: Sequence[float]) -> list[AlphaPoint]:
    """Return, for each alpha (SearChain, section 4.1, appendix A.3.1), how many nodes it would correct.

    It also tells whether the answers that it leaves alone are the better ones. It looks at the answers that the LM
    gave before it saw a passage. To see what another alpha leads to, run it:
    ``questree compare searchain --set check=reader --over alpha --value 0.3 --value 0.4``.

    Raises:
        QuestreeError: if no record has a score by rouge-l and a node with an answer and a passage.
    """
    long = [record for record in records if record.failure is None and "rouge-l" in record.scores]
    questions = [(agreed, record.scores["rouge-l"]) for record in long if (agreed := _agreements(record))]
    if not questions:
        raise QuestreeError("No answered question here is scored by rouge-l and has nodes with answer and passage.")
    nodes = [agreement for agreed, _ in questions for agreement in agreed]
    points = []
    for alpha in alphas:
        alone = [score for agreed, score in questions if min(agreed) > alpha]
        others = [score for agreed, score in questions if min(agreed) <= alpha]
        means = (fmean(scores) if scores else None for scores in (alone, others))
        points.append(AlphaPoint(alpha, len(nodes), fmean(one <= alpha for one in nodes), len(alone), *means))
    return points


def _agreements(record: Record) -> list[float]:
    """Return the ROUGE-L of answer and passage of each node that has a passage and was not rewritten."""
    nodes = record.tree.nodes if record.tree else []
    judged = [node for node in nodes if node.replaces is None and node.repeats is None]
    return [rouge_l(node.answer, [node.passage.text]) for node in judged if node.answer and node.passage]
