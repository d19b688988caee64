"""One-step retrieval, with a direct answer or a chain of thought."""

from __future__ import annotations

from typing import ClassVar

import dspy
from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromPassages
from ..modules.answers import PlainAnswer
from ..modules.knowledge import KnowledgeAnswer
from ..program import Program, ProgramSettings, answered
from ..references import numbered
from ..tree import ReasoningTree


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
            self.knowledge_answer = KnowledgeAnswer()
        else:
            self.passage_answer = PlainAnswer(AnswerFromPassages)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve with the question, and answer from what was found."""
        question, found, references = tree.question, self.retrieve(tree.question, self.settings.k), list[Passage]()
        if self.reasons:
            answer, content, references = self.knowledge_answer(
                question=question, answer_style=answer_style, passages=found
            )
        else:
            shown = numbered(found)
            answer = content = self.passage_answer(question=question, answer_style=answer_style, passages=shown)
        tree.add_search(None, question, found, answer=answer, source="completed" if found else "lm")
        return answered(tree, answer, content, references)


class OneRCoT(OneR):
    """One-step retrieval with a chain of thought (ToR, section 4.3, OneR-CoT)."""

    name = "oner-cot"
    reasons = True
