"""ITER-RETGEN."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...metrics import without_marks
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ...signatures.knowledge import AnswerOrGuess
from ..modules.answers import cited_answer
from ..program import Program, ProgramSettings, answered
from ..tree import ReasoningTree, Source


class IterRetgenSettings(ProgramSettings):
    """How it iterates; the defaults are those of the paper's main results.

    Attributes:
        k: passages a turn.
        turns: of retrieval and generation.
    """

    k: int = Field(default=5, ge=1)
    turns: int = Field(default=2, ge=1)


class IterRetgen(Program):
    """ITER-RETGEN (Shao et al., EMNLP Findings 2023, arXiv 2305.15294): each reply is the next search.

    Each turn retrieves with the last turn's reasoning and answer before the question, and answers the question again
    from these passages alone; the last turn's answer is given.
    """

    name = "iter-retgen"
    Settings = IterRetgenSettings
    settings: IterRetgenSettings

    def __init__(self, retriever: Retriever | None = None, settings: IterRetgenSettings | None = None):
        super().__init__(retriever, settings)
        self.knowledge_answer = dspy.Predict(AnswerOrGuess)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve and generate in turns; ``passages`` are those of the last turn."""
        query, last, inputs = tree.question, None, {"question": tree.question, "answer_style": answer_style}
        for _ in range(self.settings.turns):
            passages = self.retrieve(query, self.settings.k)
            cited = cited_answer(self.knowledge_answer, passages, **inputs)
            source: Source = "completed" if passages else "lm"
            last = tree.add_search(last, query, passages, answer=cited.answer, source=source, sure=cited.sure)
            query = f"{without_marks(cited.content)} {cited.answer} {tree.question}".strip()
        return answered(tree, *cited, passages=passages)
