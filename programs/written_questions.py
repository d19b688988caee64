"""Questions of one's own corpus: written from linked passages, and checked before they are kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy
from pydantic import BaseModel, ValidationError

from ..common.placeholders import numbers_in
from ..common.text import neutralise
from ..data.task import Question, Split
from ..lm.call import call
from ..metrics import all_stand_in, metric, stands_in
from ..metrics.quotes import quoted_sentences
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from ..signatures.written_questions import (
    ASKED,
    AnswerFromMemory,
    JudgePassage,
    QuestionKind,
    WriteQuestion,
    WrittenStep,
)
from .answer import settle_answer
from .evidence_chain import EvidenceChain
from .modules.step_module import StepModule
from .program import Program, answered
from .references import distinct, first_of, numbered
from .tree import ReasoningTree


@dataclass(frozen=True)
class Chain:
    """Linked passages that a question is to be written from."""

    passages: tuple[Passage, ...]
    kind: QuestionKind
    split: Split

    @property
    def title(self) -> str:
        """Return what tells it from other chains, as a person sees it."""
        named = (f"{one.title} ({one.id})" if one.title else one.id for one in self.passages)
        return neutralise(f"{self.kind}: {' → '.join(named)}").strip()


@dataclass(frozen=True)
class WrittenQuestion:
    """What an LM wrote from a chain.

    Attributes:
        row: a line of a task's file.
        steps: each with its passage, and the sentences there that hold its quote, behind the title.
    """

    kind: QuestionKind
    row: dict[str, Any]
    steps: list[tuple[WrittenStep, Passage, str]]

    @cached_property
    def example(self) -> Any:
        """Return it as DSPy evaluates on it; None if it is no question."""
        with suppress(ValidationError):
            return Question.model_validate({"id": "written", "task": "own", "split": "train", **self.row}).to_example()

    def fault(self, passages: int) -> str:
        """Return the first fault that a rule finds, by how many passages were shown; empty if there is none."""
        asked, answers, steps = self.row["question"], self.row["answers"], [step for step, *_ in self.steps]
        items = {"absent": range(1), "list": range(2, 100)}.get(self.kind, range(1, 100))
        if not self.example or len(answers) not in items or self.row["hops"] < min(2, passages):
            return "no question, or none that needs two passages"
        told = self.steps[:-1] if self.kind == "absent" else self.steps
        last = [text for *_, text in (told if self.kind == "comparison" else told[-1:])]
        proven = all(step.answer and text and all_stand_in(text, step.answer) for step, _, text in told)
        if not proven or not all(any(stands_in(text, answer) for text in last) for answer in answers):
            return "a quote is not in its passage, or does not tell the answer"
        needed = {number for step in steps for number in numbers_in(step.question)}
        inner = [step.answer for number, step in enumerate(steps, start=1) if number in needed and step.answer]
        named = any(stands_in(asked, one) for one in (inner if self.kind == "comparison" else [*inner, *answers]))
        return "it names an answer" if named else ""


class QuestionChecks(StepModule):
    """Tells why a written question is not kept: by calls, each of which asks more of it than the one before."""

    def __init__(self, retriever: Retriever | None):
        super().__init__()
        self.memory, self.single = dspy.Predict(AnswerFromMemory), dspy.Predict(JudgePassage)
        self.finder = EvidenceChain(retriever)

    def forward(self, written: WrittenQuestion) -> str:
        """Return the first fault; empty if there is none."""
        asked, is_right = written.example, metric("by-style")
        if asked.answers:
            remembered = call(self.memory, **asked.inputs()).remembered
            if is_right(asked, dspy.Prediction(answer=remembered), trace=[]):
                return "the LM knows the answer"
            passages = distinct([[passage] for _, passage, _ in written.steps])
            given = {"question": asked.question, "proposed_answer": asked.answer}
            for passage in passages if len(passages) > 1 else []:
                holds = all(stands_in(f"{passage.title}. {passage.text}", answer) for answer in asked.answers)
                if holds and call(self.single, passages=numbered([passage]), **given).suffices:
                    return "one passage is enough"
        found = self.finder.reason(ReasoningTree(question=asked.question), asked.answer_style)
        settle_answer(found, asked.answer_style, "unsure")
        return "" if is_right(asked, found, trace=[]) else "no program finds the answer"


class QuestionWriting(Program):
    """Writes a question from each of its chains, and checks it: what it is asked is the title of a chain.

    The prediction has the line of the question, ``written``, and why it is not kept, ``fault``.
    """

    name = "questions"

    def __init__(self, retriever: Retriever | None = None, settings: BaseModel | None = None):
        super().__init__(retriever, settings)
        self.write, self.checks = dspy.Predict(WriteQuestion), QuestionChecks(self.retriever)
        self.chains: dict[str, Chain] = {}

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Write the question of a chain, and look for faults."""
        chain = self.chains[tree.question]
        written = self.written(chain)
        row, fault = written.row, written.fault(len(chain.passages)) or self.checks(written)
        answer, passages = "; ".join(row["answers"]), list(chain.passages)
        return answered(tree, answer, row["question"], passages, written=row, fault=fault)

    def written(self, chain: Chain) -> WrittenQuestion:
        """Return what the LM writes from a chain."""
        reply = call(self.write, passages=numbered(chain.passages), asks_for=ASKED[chain.kind])
        named = [(one, first_of([one.passage], chain.passages)) for one in reply.steps if one.question.strip()]
        quoted = [(one, passage, quoted_sentences(one.quote, passage.text)) for one, passage in named if passage]
        passages = distinct([[passage] for _, passage, _ in quoted])
        row = {
            "question": reply.written_question.strip(),
            "answers": [one.strip() for one in reply.answers if one.strip()],
            "type": chain.kind,
            "style": "list" if chain.kind == "list" else "short",
            "hops": len(passages),
            "gold_passages": [one.id for one in passages],
            "gold_titles": [one.title for one in passages if one.title],
            "steps": [
                {"question": one.question, "answer": one.answer.strip() or None, "support_title": passage.title or None}
                for one, passage, _ in quoted
            ],
            "quotes": [one.quote for one, *_ in quoted],
            "quoted_from": [passage.text for _, passage, _ in quoted],
            "written_by": _model(self.write),
            "checked_by": _model(self.checks.memory),
        }
        steps = [(one, passage, f"{passage.title}. {told}" if told else "") for one, passage, told in quoted]
        return WrittenQuestion(chain.kind, row, steps)


def _model(predict: dspy.Predict) -> str:
    return str((predict.lm or dspy.settings.lm).model)
