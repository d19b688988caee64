"""What an evaluation found: a score with its interval, failures apart, and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..lm.ledger import Spent, total
from ..metrics import Interval, mean_interval
from .records import Record


@dataclass(frozen=True)
class Evaluation:
    """The records of one run over a set of questions, and what they add up to.

    Attributes:
        metric: the metric that ``score`` is of.
        records: one for each question, in the order of the questions.
        simulated: made with the simulated LM: says something about plumbing, nothing about methods.
        seed: of the intervals.
    """

    metric: str
    records: tuple[Record, ...]
    simulated: bool = False
    seed: int = 0

    @property
    def score(self) -> Interval:
        """Mean over all questions with its 95% interval. A failed question earns nothing; see ``failures``."""
        return self.score_of(self.metric)

    def score_of(self, metric: str) -> Interval:
        """As ``score``, of another of the run's metrics."""
        return mean_interval([record.scores[metric] for record in self.records], seed=self.seed)

    @property
    def answered(self) -> Interval | None:
        """The same over the questions that did not fail; None where all did."""
        scores = [record.scores[self.metric] for record in self.records if record.failure is None]
        return mean_interval(scores, seed=self.seed) if scores else None

    @property
    def n(self) -> int:
        """Questions, failed ones among them."""
        return len(self.records)

    @property
    def failures(self) -> dict[str, int]:
        """Failed questions by cause, the most frequent first."""
        return dict(Counter(r.failure.cause for r in self.records if r.failure is not None).most_common())

    @property
    def retrieval(self) -> dict[str, float]:
        """Means of what was found (`records.retrieval_scores`), each over the questions that it is known of.

        ``documents a call``: how many passages an LM call was worth, over all questions (ToR, table 5).
        """
        names = dict.fromkeys(name for record in self.records for name in record.retrieval)
        known = {name: [r.retrieval[name] for r in self.records if name in r.retrieval] for name in names}
        means = {name: fmean(values) for name, values in known.items()}
        calls = self.spent.calls
        return means | ({"documents a call": sum(known["documents"]) / calls} if "documents" in known and calls else {})

    @property
    def spent(self) -> Spent:
        """LM calls, tokens, words and cost of all questions together."""
        return total([record.spent for record in self.records])

    @property
    def seconds(self) -> float:
        """Mean wall time of a question."""
        return fmean(record.seconds for record in self.records)

    @property
    def rounds(self) -> float:
        """Mean rounds of interaction between LM and retrieval: the youngest node's round, 0 where no node grew."""
        return fmean(record.rounds for record in self.records)

    @property
    def sources(self) -> dict[str, int]:
        """Nodes on the final paths by knowledge source (SearChain, table 2)."""
        return dict(Counter(source for record in self.records for source in record.sources).most_common())

    def figures(self) -> dict[str, float]:
        """Every number of it by name, as a tracking server or a table takes them."""
        score, spent = self.score, self.spent
        figures: dict[str, float] = {
            "score": score.mean,
            "score_low": score.low,
            "score_high": score.high,
            "questions": self.n,
            "failures": sum(self.failures.values()),
            "lm_calls": spent.calls,
            "lm_requests_failed": spent.failed,
            "lm_calls_a_question": spent.calls / self.n,
            "tokens_in": spent.tokens_in,
            "tokens_out": spent.tokens_out,
            "words_in": spent.words_in,
            "words_out": spent.words_out,
            "cost": spent.cost,
            "rounds_a_question": self.rounds,
            "seconds_a_question": self.seconds,
        }
        figures |= {f"metric_{name}": self.score_of(name).mean for name in self.records[0].scores}
        figures |= {f"failures_{cause}": count for cause, count in self.failures.items()}
        figures |= {f"source_{source}": count for source, count in self.sources.items()}
        return figures | {name.replace(" ", "_"): value for name, value in self.retrieval.items()}

    def table(self) -> list[dict[str, Any]]:
        """One flat row for each question."""
        return [_row(record) for record in self.records]

    def __str__(self) -> str:
        failed = "".join(f", {count} failed ({cause})" for cause, count in self.failures.items())
        return f"{self.metric} {self.score}{failed}{', simulated' if self.simulated else ''}"


def _row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "question": record.question,
        "answers": " | ".join(record.answers),
        "answer": record.answer,
        **record.scores,
        **record.retrieval,
        "failure": "" if record.failure is None else str(record.failure),
        "final_content": record.final_content,
        "references": " | ".join(passage.title or passage.id for passage in record.references),
        "sources": " ".join(record.sources),
        "calls": record.spent.calls,
        "tokens": record.spent.tokens_in + record.spent.tokens_out,
        "cost": record.spent.cost,
        "seconds": round(record.seconds, 3),
        "kind": record.kind,
        "hops": record.hops,
    }
