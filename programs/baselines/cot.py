"""Chain of thought."""

from __future__ import annotations

import dspy

from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ..modules import StepByStepAnswer
from ..program import answered
from ..tree import ReasoningTree
from .baseline import Baseline, BaselineSettings


class ChainOfThought(Baseline):
    """Chain-of-thought prompting (Wei et al., NeurIPS 2022, arXiv 2201.11903).

    Without demonstrations it is the zero-shot kind (Kojima et al., NeurIPS 2022); compile it for those of the paper.
    """

    name = "cot"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: BaselineSettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = StepByStepAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """One call: the reasoning, then the answer."""
        answer, content, references = self.step_by_step_answer(question=tree.question, answer_style=answer_style)
        tree.grow(None, query=tree.question, answer=answer, source="lm")
        return answered(tree, answer, content, references)


class AutoCoT(ChainOfThought):
    """Auto-CoT (Zhang et al., ICLR 2023, arXiv 2210.03493): chain of thought whose demonstrations make themselves.

    What is its own happens in compilation: the optimizer ``auto-cot`` clusters the training questions and lets the LM
    reason about one of each cluster, and is what this program is compiled with unless another is named. Uncompiled,
    it is ``cot``.
    """

    name = "auto-cot"
    default_optimizer = "auto-cot"
