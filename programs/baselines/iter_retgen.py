"""ITER-RETGEN."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...metrics import without_marks
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..modules.knowledge import KnowledgeAnswer
from ..program import Program, ProgramSettings, answered
from ..references import distinct
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
        self.knowledge_answer = KnowledgeAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve and generate in turns; ``passages`` begins with those of the last turn."""
        query, last, turns = tree.question, None, list[list[Passage]]()
        for turn in range(1, self.settings.turns + 1):
            turns.insert(0, self.retrieve(query, self.settings.k))
            answer, content, references = self.knowledge_answer(
                question=tree.question, answer_style=answer_style, passages=turns[0]
            )
            source: Source = "completed" if turns[0] else "lm"
            last = tree.add_search(last, query, turns[0], answer=answer, source=source, round=turn)
            query = f"{without_marks(content)} {answer} {tree.question}".strip()
        return answered(tree, answer, content, references, passages=distinct(turns))
