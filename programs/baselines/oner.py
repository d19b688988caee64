"""Retrieval and an answer from what was found: in one step, or in turns."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy
from pydantic import Field

from ...lm.call import call
from ...metrics import without_marks
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromPassages
from ...signatures.knowledge import AnswerWithKnowledge
from ..modules.answers import cited_answer
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
            self.knowledge_answer = dspy.Predict(AnswerWithKnowledge)
        else:
            self.passage_answer = dspy.Predict(AnswerFromPassages)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve with the question, and answer from what was found."""
        found, references = self.retrieve(tree.question, self.settings.k), list[Passage]()
        inputs = dict[str, Any](question=tree.question, answer_style=answer_style)
        if self.reasons:
            answer, content, references = cited_answer(self.knowledge_answer, found, **inputs)
        else:
            answer = content = call(self.passage_answer, passages=numbered(found), **inputs).answer
        tree.add_search(None, tree.question, found, answer=answer, source="completed" if found else "lm")
        return answered(tree, answer, content, references)


class OneRCoT(OneR):
    """One-step retrieval with a chain of thought (ToR, section 4.3, OneR-CoT)."""

    name = "oner-cot"
    reasons = True


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
        self.knowledge_answer = dspy.Predict(AnswerWithKnowledge)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve and generate in turns; ``passages`` are those of the last turn."""
        query, last, inputs = tree.question, None, {"question": tree.question, "answer_style": answer_style}
        for _ in range(self.settings.turns):
            found = self.retrieve(query, self.settings.k)
            answer, content, references = cited_answer(self.knowledge_answer, found, **inputs)
            source: Source = "completed" if found else "lm"
            last = tree.add_search(last, query, found, answer=answer, source=source)
            query = f"{without_marks(content)} {answer} {tree.question}".strip()
        return answered(tree, answer, content, references, passages=found)
