"""The result of an evaluation: a score with its interval, the failures, and the cost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from pydantic_core import to_json

from ..common.text import dollars
from ..lm.spent import Spent, total
from ..metrics import Interval, declined, declined_rates, mcnemar, mean_interval, paired_interval, stand_among
from ..metrics.found_passages import normalise_title, passage_names
from ..programs.basis import is_closed
from .records import Record
from .tables import SIMULATED, warning_of

FAILURES = "In every score a failed question counts as wrong; the score of the answered ones alone stands beside it."
"""The score of a failed question."""
ANSWERED = "answered alone"
"""The name of the score over the questions that did not fail."""
_PAID = {"tokens_in", "tokens_out", "cost"}


@dataclass(frozen=True)
class Evaluation:
    """The records of one run over a set of questions, with their scores and sums.

    Attributes:
        metric: the metric that ``score`` is of.
        records: one for each question, in the order of the questions.
        simulated: whether the simulated LM answered. Then the numbers say nothing about methods.
        seed: of the intervals.
        paid_for_all: what the whole run has paid; None if that is the sum of its records.
    """

    metric: str
    records: tuple[Record, ...]
    simulated: bool = False
    seed: int = 0
    paid_for_all: Spent | None = None

    @property
    def score(self) -> Interval:
        """Return the mean of ``metric`` over all questions with its 95% interval. A failed one counts as wrong."""
        return self.scores[self.metric]

    @cached_property
    def scores(self) -> dict[str, Interval]:
        """Return the mean of each metric by name; if it asks an LM, over the answers that the LM could judge."""
        by_name: dict[str, list[float]] = {}
        for record in self.records:
            for name, value in record.scores.items():
                by_name.setdefault(name, []).append(value)
        return {name: mean_interval(values, seed=self.seed) for name, values in by_name.items()}

    @property
    def answered(self) -> Interval | None:
        """Return ``score`` over the questions that did not fail; None if all did."""
        scores = [record.scores[self.metric] for record in self.records if record.failure is None]
        return mean_interval(scores, seed=self.seed) if scores else None

    @cached_property
    def grounded(self) -> Interval:
        """Return the same as ``score``, where an answer counts only if it `is_grounded`.

        A strong LM answers many questions from memory. This score counts what retrieval and reading did.
        """
        scores = [record.scores.get(self.metric, 0.0) * is_grounded(record) for record in self.records]
        return mean_interval(scores, seed=self.seed)

    @cached_property
    def chain_cited(self) -> Interval | None:
        """Return the same as ``score``, where an answer counts only if it cites all gold passages; None if unknown."""
        known = [record for record in self.records if record.gold_passages or record.gold_titles]
        cited = [max(record.retrieval.get(f"{by}chain cited", 0.0) for by in ("", "title ")) for record in known]
        scores = [record.scores.get(self.metric, 0.0) * whole for record, whole in zip(known, cited, strict=True)]
        return mean_interval(scores, seed=self.seed) if scores else None

    @cached_property
    def rates(self) -> dict[str, Interval]:
        """Return how many questions without an answer were declined, and how many with one were not, by name.

        Nothing where all questions have an answer, or none has.
        """
        asked = [(bool(record.gold_answers), declined(record)) for record in self.records]
        return declined_rates(asked) if len({told for told, _ in asked}) > 1 else {}

    @property
    def warning(self) -> str:
        """Return the warning to show above the scores."""
        return warning_of(self.simulated, self.self_written)

    @property
    def self_written(self) -> bool:
        """Return whether the LM that answered wrote some of the questions."""
        return any(record.self_written for record in self.records)

    @property
    def others(self) -> dict[str, Interval]:
        """Return the scores by the other metrics."""
        return {name: score for name, score in self.scores.items() if name != self.metric}

    @property
    def n(self) -> int:
        """Return the number of questions, failed ones among them."""
        return len(self.records)

    @property
    def failures(self) -> dict[str, int]:
        """Return how many questions failed, by cause, the most frequent first."""
        return dict(Counter(r.failure.cause for r in self.records if r.failure is not None).most_common())

    @cached_property
    def retrieval(self) -> dict[str, float]:
        """Return the means of the retrieval measures (`retrieval_scores`), each over the questions that have it.

        ``documents a call`` is how many passages an LM call was worth, over all questions (ToR, table 5). Where nothing
        was retrieved for any question, there is nothing to measure.
        """
        if not any(record.passages or record.seen for record in self.records):
            return {}
        names = dict.fromkeys(name for record in self.records for name in record.retrieval)
        known = {name: [r.retrieval[name] for r in self.records if name in r.retrieval] for name in names}
        means = {name: fmean(values) for name, values in known.items()}
        calls = self.spent.calls
        return means | ({"documents a call": sum(known["documents"]) / calls} if "documents" in known and calls else {})

    @cached_property
    def spent(self) -> Spent:
        """Return LM calls, tokens, words and cost of all questions together; the last attempt of each counts."""
        return total([record.spent for record in self.records])

    @property
    def paid(self) -> Spent:
        """Return what all requests of all attempts took, with those of judges and metrics."""
        return self.paid_for_all or self.spent

    @property
    def seconds(self) -> float:
        """Return the mean wall time of a question."""
        return fmean(record.seconds for record in self.records)

    @property
    def rounds(self) -> float:
        """Return the mean rounds of interaction between LM and retrieval (`Record.rounds`)."""
        return fmean(record.rounds for record in self.records)

    @property
    def sources(self) -> dict[str, int]:
        """Return how many nodes on the final paths have each knowledge source (SearChain, table 2)."""
        return dict(Counter(source for record in self.records for source in record.sources).most_common())

    def less(self, before: Evaluation) -> Interval:
        """Return this score less another over the same questions, question by question, with its 95% interval."""
        return paired_interval(*self._paired(before), seed=self.seed)

    def p(self, before: Evaluation) -> float | None:
        """Return the p-value of McNemar's test against that; None if the scores are not 0 or 1."""
        return mcnemar(*self._paired(before))

    def _paired(self, before: Evaluation) -> tuple[list[float], list[float]]:
        first, second = ([r.scores[before.metric] for r in one.records] for one in (before, self))
        return first, second

    def figures(self) -> dict[str, float]:
        """Return every number by name, as a tracking server takes them."""
        spent, counts = self.spent, {"lm_calls": "calls", "lm_requests_failed": "failed", "lm_calls_cached": "cached"}
        return {
            **{"score": self.score.mean, "score_low": self.score.low, "score_high": self.score.high},
            **{"grounded": self.grounded.mean, "questions": self.n},
            **({"answered": self.answered.mean} if self.answered else {}),
            **{name.replace(" ", "_"): rate.mean for name, rate in self.rates.items()},
            **({"chain_cited": self.chain_cited.mean} if self.chain_cited else {}),
            "failures": sum(self.failures.values()),
            **{name: getattr(spent, own) for name, own in counts.items()},
            "lm_calls_a_question": spent.calls / self.n,
            **spent.model_dump(include={"tokens_in", "tokens_out", "words_in", "words_out", "cost"}),
            **{f"paid_{name}": amount for name, amount in self.paid.model_dump(include=_PAID).items()},
            **{"rounds_a_question": self.rounds, "seconds_a_question": self.seconds},
            **{f"metric_{name}": score.mean for name, score in self.scores.items()},
            **{f"failures_{cause}": count for cause, count in self.failures.items()},
            **{f"source_{source}": count for source, count in self.sources.items()},
            **{name.replace(" ", "_").replace("@", "_at_"): value for name, value in self.retrieval.items()},
        }

    def as_json(self, **facts: Any) -> str:
        """Return these facts about the run, then every figure under its name in this class."""
        scores = ("metric", "simulated", "seed", "n", "score", "grounded", "chain_cited", "scores", "answered", "rates")
        more = ("warning", "failures", "retrieval", "spent", "paid", "seconds", "rounds")
        content = facts | {name: getattr(self, name) for name in (*scores, *more)}
        return to_json(content | {"sources": self.sources}, indent=2).decode()

    def table(self) -> list[dict[str, Any]]:
        """Return one flat row for each question."""
        return [_row(record) for record in self.records]

    def __str__(self) -> str:
        failed = "".join(f", {count} failed ({cause})" for cause, count in self.failures.items())
        alone = f", {ANSWERED} {self.answered}" if failed and self.answered else ""
        rates = "".join(f", {name} {rate}" for name, rate in self.rates.items())
        said = self.warning.replace(SIMULATED, "simulated")
        return f"{self.metric} {self.score}{rates}{failed}{alone}{f', {said}' if said else ''}"


@dataclass(frozen=True)
class Paired:
    """The scores of the same questions then and now.

    Attributes:
        before: the answers that were stored, scored by the present metric.
    """

    before: Evaluation
    after: Evaluation

    @property
    def difference(self) -> Interval:
        """Return the score now less the score then, question by question, with its 95% interval."""
        return self.after.less(self.before)

    @property
    def p(self) -> float | None:
        """Return the p-value of McNemar's test; None if the scores are not 0 or 1."""
        return self.after.p(self.before)

    def figures(self) -> dict[str, Any]:
        """Return all figures of both evaluations, as in their JSON, and the difference."""
        evaluations = {"before": json.loads(self.before.as_json()), "after": json.loads(self.after.as_json())}
        return {**evaluations, "difference": asdict(self.difference), "p": self.p}


def is_grounded(record: Record) -> float:
    """Return whether a cited passage decides the answer; for a list, the share of its items that one decides.

    Where the task tells its gold passages or their titles, a gold passage, or one of the same article, must name the
    answer: others may name it and not say that it is the answer. How sure the LM is does not count. Elsewhere passages
    must decide the answer (`questree.programs.basis`), and a cited one must name it. A yes, a no, a label and a
    paragraph stand in no passage word for word: there passages must decide it, and any of those will do. That there is
    no answer, rightly, needs no passage.
    """
    if declined(record) and not record.gold_answers:
        return True
    listed = record.answers if record.answer_style == "list" else ()
    by_passages = record.rests_on == "passages"
    passages, titles = set(record.gold_passages), set(map(normalise_title, record.gold_titles))
    cited = list(record.references) if by_passages or listed else []
    if passages or titles:
        named = zip(record.references, passage_names(record.references, passages), strict=True)
        cited = [passage for passage, name in named if name in passages or normalise_title(passage.title) in titles]
    texts = [f"{passage.title} {passage.text}" for passage in cited]
    if listed:
        return fmean(stand_among(texts, item) for item in listed)
    if not record.answer or is_closed(record.answer):
        return by_passages and bool(cited)
    return stand_among(texts, record.answer)


def cost_of(spent: Spent) -> str:
    """Return the cost to show; where the client's cache answered some calls, how many, since the cost is then unknown.

    Settings of one program share prompts, so what each of them paid depends on which was asked first.
    """
    return f"{spent.cached} of {spent.calls} calls cached" if spent.cached else dollars(spent.cost)


def of_how_many(evaluation: Evaluation, name: str) -> str:
    """Return `` (n=12)`` for a score or a retrieval measure over 12 questions; empty if it is over all."""
    score = evaluation.scores.get(name)
    count = score.n if score else sum(name in record.retrieval for record in evaluation.records)
    return f" (n={count})" if 0 < count < evaluation.n else ""  # 0: a figure of all questions together


def _row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "question": record.question,
        "answers": " | ".join(record.gold_answers),
        "answer": record.answer,
        "rests_on": record.rests_on or "",
        **record.scores,
        **record.retrieval,
        "failure": "" if record.failure is None else str(record.failure),
        "final_content": record.final_content,
        "references": " | ".join(passage.title or passage.id for passage in record.references),
        "sources": " ".join(record.sources),
        "calls": record.spent.calls,
        "tokens": record.spent.tokens_in + record.spent.tokens_out,
        "cached": record.spent.cached,
        "cost": None if record.spent.cached else record.spent.cost,
        "seconds": round(record.seconds, 3),
        "kind": record.kind,
        "hops": record.hops,
    }
