"""Answers to a question: outright, after some thought, or from texts."""

from __future__ import annotations

from functools import partial
from typing import Any

import dspy

from ...lm.call import call
from ...lm.window import shown_of
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.answers import Answer, AnswerStepByStep
from ..demonstrations import note
from ..majority import Sample
from ..references import kept_all_marks, settle_marks, supported_by
from ..streams import Writing
from .step_module import StepModule


class PlainAnswer(StepModule):
    """An answer without reasoning: from memory, from texts, or as given thoughts lead to it, as its signature says."""

    def __init__(self, signature: type[dspy.Signature] = Answer) -> None:
        super().__init__()
        self.answer = dspy.Predict(signature)

    def forward(self, **inputs: Any) -> str:
        """Return the answer to the inputs of the signature."""
        return str(call(self.answer, **inputs).answer)


class StepByStepAnswer(StepModule):
    """An answer from memory after a chain of thought."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerStepByStep)

    def forward(self, question: str, answer_style: AnswerStyle) -> Sample:
        """Return the answer, the reasoning without marks (there is nothing to cite), and no references."""
        return cited_answer(self.answer, [], question=question, answer_style=answer_style)


def cited_answer(
    predict: dspy.Predict, passages: list[Passage], config: dict[str, float] | None = None, /, **inputs: Any
) -> Sample:
    """Call a predictor and return its answer, its final content, and the references: ``[n]`` is ``references[n-1]``.

    A mark that its passage does not support is taken out; such a reply is no demonstration. ``config`` has options of
    the LM for this call, such as a temperature.
    """
    rule = supported_by(inputs["question"])
    settle = partial(settle_marks, references=passages, belongs=rule)
    reply = call(predict, config, writing=partial(Writing, settle), **inputs)
    final_content, references = settle_marks(reply.final_content, shown_of(passages, reply), rule)
    note(reply, exemplary=kept_all_marks(reply.final_content, final_content))
    return reply.answer, final_content, references
