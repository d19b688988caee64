"""Direct prompting."""

from __future__ import annotations

import dspy

from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ..modules import DirectAnswer
from ..program import answered
from ..tree import ReasoningTree
from .baseline import Baseline, BaselineSettings


class Direct(Baseline):
    """Direct prompting (SearChain, table 1): the question, and the answer; demonstrations come from compilation."""

    name = "direct"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: BaselineSettings | None = None):
        super().__init__(retriever, settings)
        self.direct_answer = DirectAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """One call."""
        answer = self.direct_answer(question=tree.question, answer_style=answer_style)
        tree.grow(None, query=tree.question, answer=answer, source="lm")
        return answered(tree, answer, answer, [])
