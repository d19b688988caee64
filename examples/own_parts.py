"""A package of one file with parts of one's own: a program, a metric, a retriever, a task and an optimizer."""

from __future__ import annotations

import dspy
from pydantic import BaseModel, ConfigDict

from questree import Passage
from questree.data import Question, Task, load_task
from questree.optimize import Job, Optimizer
from questree.programs import (
    Program,
    ReasoningTree,
    answered,
    call,
    distinct,
    numbered,
    settle_marks,
    shown_of,
    supported_by,
)
from questree.retrieval import Retriever
from questree.signatures import AnswerStyle, answer_field, answer_style_field, passages_field, question_field


class AnswerWithReason(dspy.Signature):
    """Answer the question from the passages, and say in a sentence why."""

    question: str = question_field()
    answer_style: str = answer_style_field()
    passages: list[str] = passages_field()
    reason: str = dspy.OutputField(desc="a sentence, with [1] behind what the first passage says")
    answer: str = answer_field()


class BothSettings(BaseModel):
    """How many passages each search brings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    k: int = 3


class Both(Program):
    """Search with the question and again with the first answer (an example, 2026)."""

    name = "both"
    Settings = BothSettings
    settings: BothSettings

    def __init__(self, retriever: Retriever | None = None, settings: BothSettings | None = None):
        super().__init__(retriever, settings or BothSettings())
        self.read = dspy.Predict(AnswerWithReason)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer twice; the second time with what the first answer led to."""
        query, node, passages = tree.question, None, list[Passage]()
        for _ in range(2):
            found = self.retrieve(query, self.settings.k)
            passages = distinct([passages, found])
            reply = call(self.read, question=tree.question, answer_style=answer_style, passages=numbered(passages))
            node = tree.grow(node, query=query, answer=reply.answer, source="completed", found=tuple(found))
            query = reply.answer
        content, references = settle_marks(reply.reason, shown_of(passages, reply), supported_by(tree.question))
        return answered(tree, reply.answer, content, references)


def brevity(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    """Whether the answer has at most three words (an example, 2026)."""
    return float(len(prediction.answer.split()) <= 3)


def capitals(query: str) -> list[Passage]:
    """Find the same passage whatever is asked."""
    return [Passage(id="peru", title="Peru", text="The capital of Peru is Lima.", score=1.0)]


class Capitals:
    """A retriever as an object; `questree --retriever own_parts:Capitals` makes one."""

    name = "capitals"

    def __call__(self, query: str) -> list[Passage]:
        """Return the passages for a query."""
        return capitals(query)


def short_questions() -> Task:
    """Return the bundled questions that have at most ten words."""
    mini = load_task("mini")

    def short(questions: tuple[Question, ...]) -> tuple[Question, ...]:
        return tuple(question for question in questions if len(question.question.split()) <= 10)

    return mini.model_copy(update={"questions": {split: short(found) for split, found in mini.questions.items()}})


class FirstQuestions(Optimizer):
    """The first training questions as demonstrations, as they are (an example, 2026)."""

    name = "first-questions"
    count: int = 2

    def make(self, student: dspy.Module, job: Job) -> dspy.Module:
        """Return a copy that shows the first questions."""
        return dspy.LabeledFewShot(k=self.count).compile(student, trainset=job.trainset, sample=False)
