"""Questions of one's own corpus: written from linked passages, and checked before they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from pydantic import ValidationError

from ..common.placeholders import numbers_in
from ..common.text import neutralise
from ..data.task import Question, Split
from ..lm.call import call
from ..metrics import all_stand_in, metric, stands_in
from ..metrics.quotes import quoted_sentences
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from ..signatures.questions import ASKED, AnswerFromMemory, JudgePassage, QuestionKind, WriteQuestion, WrittenStep
from .evidence_chain import EvidenceChain, EvidenceChainSettings
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
        passages: that the steps need, each once, in their order.
    """

    chain: Chain
    row: dict[str, Any]
    steps: tuple[tuple[WrittenStep, Passage, str], ...]
    passages: tuple[Passage, ...]

    @property
    def question(self) -> Question:
        """Return the question as a task has it; raise a ValueError if it is none."""
        return Question.model_validate({"id": "written", "task": "written", "split": self.chain.split, **self.row})


class Checks(StepModule):
    """Tells why a written question is not kept: by rules first, then by calls."""

    def __init__(self, retriever: Retriever | None):
        super().__init__()
        self.memory, self.single = dspy.Predict(AnswerFromMemory), dspy.Predict(JudgePassage)
        self.finder = EvidenceChain(retriever, EvidenceChainSettings(abstain=True))

    def forward(self, written: WrittenQuestion) -> str:
        """Return the first fault; empty if there is none."""
        checks: Mapping[str, Callable[[WrittenQuestion], bool]] = {
            "no question, or none that needs two passages": _is_incomplete,
            "a quote is not in its passage, or does not tell the answer": _is_unproven,
            "it names an answer": _tells,
            "the LM knows the answer": self._is_known,
            "one passage is enough": self._needs_one,
            "no program finds the answer": self._is_not_found,
        }
        return next((fault for fault, finds in checks.items() if finds(written)), "")

    def _is_known(self, written: WrittenQuestion) -> bool:
        asked = written.question.to_example()
        if not asked.answers:
            return False
        reply = call(self.memory, **asked.inputs())
        return metric("by-style").verdict(asked, dspy.Prediction(answer=reply.remembered))

    def _needs_one(self, written: WrittenQuestion) -> bool:
        asked = written.question.to_example()
        if len(written.passages) == 1 or not asked.answers:
            return False
        told = [(one, f"{one.title}. {one.text}") for one in written.passages]
        holding = [one for one, text in told if all(stands_in(text, answer) for answer in asked.answers)]
        given = {"question": asked.question, "proposed_answer": asked.answer}
        return any(call(self.single, passages=numbered([one]), **given).suffices for one in holding)

    def _is_not_found(self, written: WrittenQuestion) -> bool:
        asked = written.question.to_example()
        found = self.finder.reason(ReasoningTree(question=asked.question), asked.answer_style)
        return not metric("by-style").verdict(asked, found)


class QuestionWriting(Program):
    """Writes a question from each of its chains, and checks it: what it is asked is the title of a chain.

    The prediction has the line of the question, ``written``, and why it is not kept, ``fault``.
    """

    name = "questions"

    def __init__(self, retriever: Retriever | None = None, settings: Any = None):
        super().__init__(retriever, settings)
        self.write, self.checks = dspy.Predict(WriteQuestion), Checks(self.retriever)
        self.chains: dict[str, Chain] = {}

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Write the question of a chain, and look for faults."""
        written = self.written(self.chains[tree.question])
        row, fault = written.row, self.checks(written)
        return answered(
            tree, "; ".join(row["answers"]), row["question"], list(written.passages), written=row, fault=fault
        )

    def written(self, chain: Chain) -> WrittenQuestion:
        """Return what the LM writes from a chain."""
        reply = call(self.write, passages=numbered(chain.passages), asks_for=ASKED[chain.kind])
        named = [(one, first_of([one.passage], chain.passages)) for one in reply.steps if one.question.strip()]
        steps = [
            (one, passage, f"{passage.title}. {told}" if (told := quoted_sentences(one.quote, passage.text)) else "")
            for one, passage in named
            if passage
        ]
        passages = distinct([[passage] for _, passage, _ in steps])
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
                for one, passage, _ in steps
            ],
            "quotes": [one.quote for one, *_ in steps],
            "written_by": _model(self.write),
            "checked_by": _model(self.checks.memory),
        }
        return WrittenQuestion(chain, row, tuple(steps), tuple(passages))


def _model(predict: dspy.Predict) -> str:
    return str((predict.lm or dspy.settings.lm).model)


def _is_incomplete(written: WrittenQuestion) -> bool:
    """Return whether a part is missing, or the steps need fewer than two of several passages."""
    row, kind = written.row, written.chain.kind
    few = len(written.passages) < min(2, len(written.chain.passages))
    if not row["question"] or few or bool(row["answers"]) == (kind == "absent"):
        return True
    try:
        return bool(kind == "list" and len(written.question.needed) < 2)
    except ValidationError:
        return True


def _is_unproven(written: WrittenQuestion) -> bool:
    """Return whether the quote of a step does not tell its answer, or the one of the last step not the final answer.

    The last step of a question that the corpus does not answer has none.
    """
    kind, answers = written.chain.kind, written.row["answers"]
    steps = written.steps[:-1] if kind == "absent" else written.steps
    if any(not (step.answer and told and all_stand_in(told, step.answer)) for step, _, told in steps):
        return True
    told = [text for _, _, text in steps if kind == "comparison"] or [text for _, _, text in steps[-1:]]
    return not all(any(stands_in(text, answer) for text in told) for answer in answers)


def _tells(written: WrittenQuestion) -> bool:
    """Return whether the question names its answer, or that of a step which another step needs."""
    steps = [step for step, *_ in written.steps]
    needed = {number for step in steps for number in numbers_in(step.question)}
    inner = [step.answer for number, step in enumerate(steps, start=1) if number in needed and step.answer]
    own = [] if written.chain.kind == "comparison" else written.row["answers"]
    return any(stands_in(written.row["question"], answer) for answer in [*inner, *own])
