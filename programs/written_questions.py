"""Questions of one's own corpus: written from linked passages, and checked before they are kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import dspy
from pydantic import BaseModel, ValidationError

from ..common.placeholders import numbers_in
from ..common.sentences import sentences
from ..common.text import neutralise
from ..data.task import Question, Split
from ..lm.call import call
from ..metrics import all_stand_in, cover_exact_match, metric, normalise, stands_in
from ..metrics.quotes import quoted_sentences
from ..retrieval import Passage, Retriever
from ..retrieval.linked.chains import told_in
from ..signatures import AnswerStyle
from ..signatures.knowledge import DraftAnswer
from ..signatures.written_questions import ASKED, HearQuestion, QuestionKind, WriteQuestion, WrittenStep
from .answer import answer_items, settle_answer
from .evidence_chain import EvidenceChain
from .modules import StepModule
from .program import Program, answered
from .references import distinct, first_of, numbered
from .tree import ReasoningTree

_LEAST = {"bridge": 2, "comparison": 2}  # passages


@dataclass(frozen=True)
class Chain:
    """Passages that a question is to be written from.

    Attributes:
        passages: each linked to the one before.
        near: other passages on the same subject.
    """

    passages: tuple[Passage, ...]
    kind: QuestionKind
    split: Split
    near: tuple[Passage, ...] = ()

    @property
    def shown(self) -> list[Passage]:
        """Return the passages as a prompt shows them."""
        return [*self.passages, *self.near]

    @property
    def title(self) -> str:
        """Return a name for people that identifies the chain."""
        named = (f"{one.title} ({one.id})" if one.title else one.id for one in self.passages)
        return neutralise(f"{self.kind}: {' → '.join(named)}").strip()

    @property
    def asks_for(self) -> str:
        """Return what the question is to ask for; for one fact, a sentence that may tell it, so that they differ."""
        told = told_in(self.passages[-1]) if self.kind in ("bridge", "single") else []
        drawn = [f"if it suits, from this: {' '.join(Random(self.title).choice(told).split())}"] if told else []
        return "; ".join([ASKED[self.kind], *drawn])


@dataclass(frozen=True)
class WrittenQuestion:
    """A question that an LM wrote from a chain.

    Attributes:
        row: a line of a task's file.
        steps: each with its passage, and the sentences there that hold its quote, behind the title.
    """

    kind: QuestionKind
    row: dict[str, Any]
    steps: list[tuple[WrittenStep, Passage, str]]

    @cached_property
    def example(self) -> Any:
        """Return it as an example for DSPy; None if it is no valid question."""
        with suppress(ValidationError):
            return Question.model_validate({"id": "written", "task": "own", "split": "train", **self.row}).to_example()

    def fault(self) -> str:
        """Return the first fault that a rule finds; empty if there is none."""
        asked, answers, steps = self.row["question"], self.row["answers"], [step for step, *_ in self.steps]
        items = {"absent": range(1), "list": range(2, 100)}.get(self.kind, range(1, 100))
        if not self.example or len(answers) not in items or self.row["hops"] < _LEAST.get(self.kind, 1):
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

    def rest_on(self, needed: list[Passage]) -> None:
        """Make these the only gold passages. A step with another passage stays; it then rests on one of these that
        tells it from the other side, such as "The daughter of B is A" for the mother of A, or on none.
        """
        self.row.update(_gold(needed))
        for number, (step, passage, _) in enumerate(self.steps):
            if passage in needed:
                continue
            told = ((one, sentence) for one in needed for sentence in sentences(one.text))
            back = next((pair for pair in told if _tells_back(*pair, step.answer, passage.title)), None)
            self.row["steps"][number]["support_title"] = back[0].title or None if back else None
            if back:
                self.row["quoted_from"][number], self.row["quotes"][number] = back[0].text, back[1]


class QuestionChecks(StepModule):
    """Finds the reason to drop a written question, by LM calls that are stricter one after the other."""

    def __init__(self, retriever: Retriever | None):
        super().__init__()
        self.hearing, self.reader = dspy.Predict(HearQuestion), dspy.Predict(DraftAnswer)
        self.finder = EvidenceChain(retriever)

    def forward(self, written: WrittenQuestion) -> str:
        """Return the first fault; empty if there is none. The question then rests on the passages that it needs."""
        asked = written.example
        heard = call(self.hearing, **asked.inputs())
        if not heard.well_asked:
            return f"nobody would ask it so ({heard.odd})"
        if asked.answers:
            if _is_right(asked, heard.remembered):
                return "the LM knows the answer"
            passages = distinct([[passage] for _, passage, _ in written.steps])
            if not self.tell(asked, passages):
                return "its passages do not tell the answer"
            needed = passages
            for passage in [*passages[1:], *passages[:1]]:  # the start, which a search finds first, goes last
                rest = [one for one in needed if one is not passage]
                needed = rest if self.tell(asked, rest) else needed
            if len(needed) < min(2, len(passages)):
                return "one passage is enough"
            written.rest_on(needed)
        # asked for a list, the program also names other answers that fit; a comparison has only one answer
        style: AnswerStyle = "short" if written.kind == "comparison" else "list"
        found = self.finder.reason(ReasoningTree(question=asked.question), style)
        settle_answer(found, style, "unsure")
        parts = {normalise(part) for answer in asked.answers for part in answer_items(answer)}  # of "salt and pepper"
        if found.answers and {*map(normalise, found.answers)} == parts:
            return ""
        guessed = answer_items(found.nearest) if written.kind == "absent" else []
        held = [answer for answer in guessed if any(stands_in(read.text, answer) for read in found.passages)]
        others = [*found.answers, *held]
        if not all(cover_exact_match(answer, asked.answers) for answer in others):
            return f"a program finds other answers ({'; '.join(others[:5])})"
        return "" if _is_right(asked, found.answer) else "no program finds the answer"

    def tell(self, asked: dspy.Example, passages: list[Passage]) -> bool:
        """Return whether a reader who does not know the answer reads it in these passages."""
        held = " ".join(f"{one.title}. {one.text}" for one in passages)
        if not all(stands_in(held, answer) for answer in asked.answers):
            return False
        return _is_right(asked, call(self.reader, passages=numbered(passages), **asked.inputs()).supported_answer)


def _is_right(asked: dspy.Example, answer: str) -> bool:
    return bool(metric("by-style")(asked, dspy.Prediction(answer=answer), trace=[]))


class QuestionWriting(Program):
    """Writes a question from each of its chains, and checks it; its input is the title of a chain.

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
        row, fault = written.row, written.fault() or self.checks(written)
        answer, passages = "; ".join(row["answers"]), chain.shown
        return answered(tree, answer, row["question"], passages, written=row, fault=fault)

    def written(self, chain: Chain) -> WrittenQuestion:
        """Return what the LM writes from a chain."""
        reply = call(self.write, passages=numbered(chain.shown), asks_for=chain.asks_for)
        named = [(one, first_of([one.passage], chain.shown)) for one in reply.steps if one.question.strip()]
        quoted = [(one, passage, quoted_sentences(one.quote, passage.text)) for one, passage in named if passage]
        passages = distinct([[passage] for _, passage, _ in quoted])
        row = {
            "question": reply.written_question.strip(),
            "answers": [answer.strip() for answer in reply.answers if answer.strip()],
            "type": chain.kind,
            "style": "list" if chain.kind == "list" else "short",
            **_gold(passages),
            "steps": [
                {"question": one.question, "answer": one.answer.strip() or None, "support_title": passage.title or None}
                for one, passage, _ in quoted
            ],
            "quotes": [quote or one.quote for one, _, quote in quoted],
            "quoted_from": [passage.text for _, passage, _ in quoted],
            "written_by": _model(self.write),
            "checked_by": _model(self.checks.hearing),
        }
        steps = [(one, passage, f"{passage.title}. {quote}" if quote else "") for one, passage, quote in quoted]
        return WrittenQuestion(chain.kind, row, steps)


def _tells_back(passage: Passage, sentence: str, answer: str, title: str) -> bool:
    """Return whether a sentence tells an answer and names the subject that it was found from."""
    return stands_in(sentence, title) and all_stand_in(f"{passage.title}. {sentence}", answer)


def _gold(passages: list[Passage]) -> dict[str, Any]:
    titles = [one.title for one in passages if one.title]
    return {"hops": len(passages), "gold_passages": [one.id for one in passages], "gold_titles": titles}


def _model(predict: dspy.Predict) -> str:
    return str((predict.lm or dspy.settings.lm).model)
