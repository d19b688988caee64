"""One-step retrieval, with a direct answer or a chain of thought."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy
from pydantic import Field

from ...lm.call import call
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromPassages
from ...signatures.knowledge import AnswerOrGuess
from ..modules.answers import CitedAnswer, cited_answer
from ..program import Program, ProgramSettings, answered
from ..references import numbered
from ..tree import ReasoningTree, Source


class OneRSettings(ProgramSettings):
    """How one-step retrieval retrieves.

    Attributes:
        k: how many passages.
    """

    k: int = Field(default=5, ge=1)


class OneR(Program):
    """One-step retrieval with a direct answer (ToR, section 4.3, OneR-Direct; SearChain, table 1, Direct Retrieval).

    An answer without reasoning has no marks, and so no references.
    """

    name = "oner"
    Settings = OneRSettings
    settings: OneRSettings

    reasons: ClassVar[bool] = False

    def __init__(self, retriever: Retriever | None = None, settings: OneRSettings | None = None):
        super().__init__(retriever, settings)
        if self.reasons:
            self.knowledge_answer = dspy.Predict(AnswerOrGuess)
        else:
            self.passage_answer = dspy.Predict(AnswerFromPassages)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve with the question, and answer from what was found."""
        passages = self.retrieve(tree.question, self.settings.k)
        inputs = dict[str, Any](question=tree.question, answer_style=answer_style)
        if self.reasons:
            cited = cited_answer(self.knowledge_answer, passages, **inputs)
        else:
            answer = call(self.passage_answer, passages=numbered(passages), **inputs).answer
            cited = CitedAnswer(answer, answer, [])
        source: Source = "completed" if passages else "lm"
        tree.add_search(None, tree.question, passages, answer=cited.answer, source=source, sure=cited.sure)
        return answered(tree, *cited)


class OneRCoT(OneR):
    """One-step retrieval with a chain of thought (ToR, section 4.3, OneR-CoT)."""

    name = "oner-cot"
    reasons = True
