"""An LM as the judge of an answer, and how far it agrees with cover-EM. Off unless it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dspy

from ..common.errors import QuestreeError
from ..lm.call import call
from ..metrics import Gold, Interval, declined, metric, share_interval
from ..signatures.answers import JudgeAnswer
from .record_scores import JUDGE
from .records import Record


class LMJudge:
    """A metric: 1 if the LM says that the answer means the same as a gold answer.

    Its calls are no part of what a question cost; a budget counts them. Its stored scores are kept, since they were
    paid for.
    """

    def __init__(self, lm: dspy.BaseLM):
        self.lm, self.name = lm, f"{JUDGE}{lm.model}"
        self.judge_answer = dspy.Predict(JudgeAnswer)

    def check(self, gold: Gold) -> None:
        """Raise a `QuestreeError` if the gold answers are regular expressions, or are all needed."""
        if gold.needed:
            raise QuestreeError("An LM judges a single answer, and this is a list; leave --judge out for this task.")
        if gold.are_regex:
            raise QuestreeError("An LM cannot judge by regular expressions; leave --judge out for this task.")

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float:
        """Return 1 or 0. Where there is no answer, no LM is asked: none is right if the corpus does not tell one.

        Raises:
            QuestreeError: if the gold answers are regular expressions, or a list.
            CallFailedError: if the judge gives no usable reply.
        """
        gold = Gold.of(example)
        self.check(gold)
        if not prediction.answer or not gold.answers:
            return float(not gold.answers and declined(prediction))
        with dspy.context(lm=self.lm, trace=None):
            reply = call(
                self.judge_answer,
                question=example.question,
                gold_answers=list(example.answers),
                proposed_answer=prediction.answer,
            )
        return float(reply.right)


def agreement(records: Iterable[Record], judge: str) -> Interval | None:
    """Return the share of the judged answers on which the judge and cover-EM agree; None if none was judged."""
    covers = metric("cover-em")
    same = [
        record.scores[judge] == float(covers(record.example, record.prediction))
        for record in records
        if record.failure is None and judge in record.scores
    ]
    return share_interval(sum(same), len(same)) if same else None
