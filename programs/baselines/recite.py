"""Recite and answer."""

from __future__ import annotations

from functools import partial

import dspy
from pydantic import Field

from ...lm.parallel import together
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ..modules import PassageAnswer, Recitation
from ..modules.sampling import majority, sample
from ..program import answered
from ..tree import ReasoningTree
from .baseline import Baseline, BaselineSettings


class ReciteSettings(BaselineSettings):
    """How much is recited.

    Attributes:
        recitations: how many passages are recited; each is answered from by itself, and the majority answers.
        temperature: of several recitations; a single one is at the LM's own.
    """

    recitations: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class Recite(Baseline):
    """Recite-and-answer (Sun et al., ICLR 2023, arXiv 2210.01296): a passage from memory, then the answer from it.

    The paper draws 20 recitations; SearChain (table 1) does not say how many: ours is one unless more are asked for.

    Args:
        settings: see `ReciteSettings`.
    """

    name = "recite"
    searches = False
    Settings = ReciteSettings
    settings: ReciteSettings

    def __init__(self, retriever: Retriever | None = None, settings: ReciteSettings | None = None):
        super().__init__(retriever, settings)
        self.recitation = Recitation()
        self.passage_answer = PassageAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Recite, and answer from each recitation; what was recited is the content."""
        recited: list[str] = sample(
            lambda: self.recitation(question=tree.question), self.settings.recitations, self.settings.temperature
        )

        def answer(recitation: str) -> str:
            return str(self.passage_answer(question=tree.question, answer_style=answer_style, passages=[recitation]))

        answers = together([partial(answer, recitation) for recitation in recited])
        for given in answers:
            tree.grow(None, query=tree.question, answer=given, source="lm")
        chosen, content = majority(list(zip(answers, recited, strict=True)), lambda pair: pair[0])
        return answered(tree, chosen, content, [], samples=answers)
