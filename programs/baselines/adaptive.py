"""Adaptive-RAG."""

from __future__ import annotations

from typing import Any

import dspy

from ...lm.call import call
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerStepByStep
from ...signatures.searches import JudgeSearchesNeeded
from ..demonstrations import note
from ..modules.answers import cited_answer
from ..program import answered
from ..tree import ReasoningTree
from .ircot import IRCoT, IRCoTSettings


class Adaptive(IRCoT):
    """Adaptive-RAG (Jeong et al., NAACL 2024, arXiv 2403.14403): no, one or many retrievals, by the question.

    A classifier says how many searches a question needs (the paper's section 3.2). If none, the question is answered
    from memory; if one, from the passages that it finds; if several, by IRCoT, as in the paper. The paper trains a
    small model on which of the three strategies answered training questions. Here the LM judges; compilation gives it
    judgements that led to right answers as demonstrations.
    """

    name = "adaptive"

    def __init__(self, retriever: Retriever | None = None, settings: IRCoTSettings | None = None):
        super().__init__(retriever, settings)
        self.searches_needed = dspy.Predict(JudgeSearchesNeeded)
        self.step_by_step_answer = dspy.Predict(AnswerStepByStep)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Judge how many searches are needed, and answer by the strategy for that."""
        question, inputs = tree.question, dict[str, Any](question=tree.question, answer_style=answer_style)
        reply = call(self.searches_needed, **inputs)
        note(reply, needed := str(reply.searches_needed))
        if needed == "none":
            cited = cited_answer(self.step_by_step_answer, [], **inputs)
            tree.grow(None, query=question, answer=cited.answer, source="lm")
            return answered(tree, *cited, searches_needed=needed)
        if needed == "several":
            prediction = super().reason(tree, answer_style)
            prediction.searches_needed = needed
            return prediction
        passages = self.retrieve(question, self.settings.k)
        last = tree.add_search(None, question, passages)
        cited = cited_answer(self.knowledge_answer, passages, **inputs)
        tree.update(last, answer=cited.answer, source="completed" if passages else "lm", sure=cited.sure)
        return answered(tree, *cited, searches_needed=needed)
