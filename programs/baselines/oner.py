"""One-step retrieval, with a direct answer or a chain of thought."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..modules.answers import PassageAnswer
from ..modules.knowledge import KnowledgeAnswer
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

    def __init__(self, retriever: Retriever | None = None, settings: OneRSettings | None = None):
        super().__init__(retriever, settings)
        self.make_answer()

    def make_answer(self) -> None:
        """Make the module that answers."""
        self.passage_answer = PassageAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve with the question, and answer from what was found."""
        found = self.retrieve(tree.question, self.settings.k)
        answer, content, references = self.answer(tree.question, answer_style, found)
        source: Source = "completed" if found else "lm"
        tree.add_search(None, tree.question, found, answer=answer, source=source)
        return answered(tree, answer, content, references)

    def answer(self, question: str, answer_style: AnswerStyle, found: list[Passage]) -> tuple[str, str, list[Passage]]:
        """Return the answer, which is also the final content, and no references."""
        answer = self.passage_answer(question=question, answer_style=answer_style, passages=numbered(found))
        return answer, answer, []


class OneRCoT(OneR):
    """One-step retrieval with a chain of thought (ToR, section 4.3, OneR-CoT)."""

    name = "oner-cot"

    def make_answer(self) -> None:
        """Make the module that answers."""
        self.knowledge_answer = KnowledgeAnswer()

    def answer(self, question: str, answer_style: AnswerStyle, found: list[Passage]) -> tuple[str, str, list[Passage]]:
        """Return the answer, the reasoning, and the passages that it cites."""
        drawn: tuple[str, str, list[Passage]] = self.knowledge_answer(
            question=question, answer_style=answer_style, passages=found
        )
        return drawn
