"""Answers from memory: direct, after a chain of thought, or from a recited passage."""

from __future__ import annotations

from functools import partial
from typing import Any

import dspy
from pydantic import Field

from ...common.text import neutralise, text_or_none
from ...lm.call import call
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import Answer, AnswerFromPassages, AnswerStepByStep
from ...signatures.knowledge import RecallPassage
from ..majority import sample, usable, winner
from ..modules.answers import cited_answer
from ..program import Program, ProgramSettings, answered
from ..tree import ReasoningTree


class Direct(Program):
    """Direct prompting (SearChain, table 1): the question, and the answer; demonstrations come from compilation."""

    name = "direct"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: ProgramSettings | None = None):
        super().__init__(retriever, settings)
        self.direct_answer = dspy.Predict(Answer)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer in one call."""
        answer = call(self.direct_answer, question=tree.question, answer_style=answer_style).answer
        tree.grow(None, query=tree.question, answer=answer, source="lm")
        return answered(tree, answer, answer, [])


class ChainOfThought(Program):
    """Chain-of-thought prompting (Wei et al., NeurIPS 2022, arXiv 2201.11903): steps from memory, then the answer.

    Without demonstrations it is the zero-shot kind (Kojima et al., NeurIPS 2022); compile it for those of the paper.
    """

    name = "cot"
    searches = False

    def __init__(self, retriever: Retriever | None = None, settings: ProgramSettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = dspy.Predict(AnswerStepByStep)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Reason and answer in one call."""
        inputs = {"question": tree.question, "answer_style": answer_style}
        cited = cited_answer(self.step_by_step_answer, [], **inputs)
        tree.grow(None, query=tree.question, answer=cited.answer, source="lm")
        return answered(tree, *cited)


class AutoCoT(ChainOfThought):
    """Auto-CoT (Zhang et al., ICLR 2023, arXiv 2210.03493): chain of thought with automatic demonstrations.

    Its own part is the compilation: the optimizer ``auto-cot``, which is its default, clusters the training questions
    and lets the LM reason about one question of each cluster. Uncompiled, it is ``cot``.
    """

    name = "auto-cot"
    default_optimizer = "auto-cot"


class ReciteSettings(ProgramSettings):
    """How much is recited.

    Attributes:
        recitations: how many passages are recited; one answer is read from each, and the majority's is given.
        temperature: of several recitations; a single one has the LM's own.
    """

    recitations: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class Recite(Program):
    """Recite-and-answer (Sun et al., ICLR 2023, arXiv 2210.01296): a passage from memory, then the answer from it.

    The paper draws 20 recitations. SearChain (table 1) does not say how many it draws; the default here is one.
    """

    name = "recite"
    searches = False
    Settings = ReciteSettings
    settings: ReciteSettings

    def __init__(self, retriever: Retriever | None = None, settings: ReciteSettings | None = None):
        super().__init__(retriever, settings)
        self.recitation = dspy.Predict(RecallPassage)
        self.passage_answer = dspy.Predict(AnswerFromPassages)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Recite passages and answer from each; the recited passage is the content."""

        def recite() -> str:
            passage = text_or_none(call(self.recitation, question=tree.question).passage)
            return neutralise(passage or "")  # it becomes part of a prompt

        def answer(passage: str) -> tuple[str, str]:
            inputs = dict[str, Any](question=tree.question, answer_style=answer_style)
            return str(call(self.passage_answer, passages=[passage], **inputs).answer), passage

        recited = sample(recite, self.settings.recitations, self.settings.temperature)
        samples = usable([partial(answer, passage) for passage in recited])
        answers = [sampled for sampled, _ in samples]
        for sampled in answers:
            tree.grow(None, query=tree.question, answer=sampled, source="lm")
        chosen, content = samples[winner(answers, answer_style)]
        return answered(tree, chosen, content, [], samples=answers)
