"""A package of one file with parts of one's own: a program, a metric, a retriever, a task and an optimizer."""

from __future__ import annotations

import dspy

from questree import Passage
from questree.data import Question, Task, load_task
from questree.optimize import Job, Optimizer
from questree.programs import ReasoningTree, answered
from questree.programs.baselines.baseline import Baseline, add_search
from questree.programs.modules import KnowledgeAnswer
from questree.retrieval import Retriever
from questree.signatures import AnswerStyle


class Both(Baseline):
    """Search with the question and again with the first answer (an example, 2026)."""

    name = "both"

    def __init__(self, retriever: Retriever | None = None, settings: object = None):
        super().__init__(retriever, settings or self.Settings())
        self.knowledge_answer = KnowledgeAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer twice; the second time with what the first answer led to."""
        question = tree.question
        found = self.retrieve(question, k=3)
        first = add_search(tree, None, question, found, source="query")
        answer, _, _ = self.knowledge_answer(question=question, answer_style=answer_style, passages=found)
        found = found + self.retrieve(answer, k=2)
        add_search(tree, first, answer, found, source="query", round=2)
        answer, content, references = self.knowledge_answer(
            question=question, answer_style=answer_style, passages=found
        )
        return answered(tree, answer, content, references, passages=found)


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
