"""What every question-answering program shares: its inputs, its prediction, and how it fails."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel

from ..common.text import neutralise
from ..lm.failure import CallFailedError, Failure, raised_in
from ..lm.ledger import ledger
from ..lm.limits import check_deadline, deadline, time_left
from ..lm.parallel import AbandonedError, within
from ..retrieval import Passage, Retriever, asking
from ..signatures import AnswerStyle
from .demonstrations import Judgement, TraceStep
from .tree import ReasoningTree

MAX_QUESTION_WORDS = 1000


class Program(dspy.Module):
    """A question-answering program. Subclasses write `reason`; this class owns how a question fails.

    Args:
        retriever: where passages come from; None for programs that use none. Shared by all copies.
        settings: saved with the program; each subclass has its own kind.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[BaseModel]]
    searches: ClassVar[bool] = True
    """Whether it takes a retriever at all."""
    default_optimizer: ClassVar[str] = "bootstrap-random-search"
    """What it is compiled with where nothing else is named."""

    def __init__(self, retriever: Retriever | None, settings: BaseModel):
        super().__init__()
        self.retriever = retriever
        self.settings = settings

    @classmethod
    def takes_retriever(cls, settings: Mapping[str, Any]) -> bool:
        """Whether it takes a retriever with these settings."""
        return cls.searches and bool(settings.get("retrieval", True))

    @abstractmethod
    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """The method itself: answer ``tree.question``, letting the tree grow; end with `answered`."""

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle = "short",
        watch: Callable[[ReasoningTree], None] | None = None,
    ) -> dspy.Prediction:
        """Answer one question.

        Args:
            question: in the user's words; field markers in it are neutralised.
            answer_style: the form of the answer.
            watch: called with the tree each time it changes.

        Returns:
            ``dspy.Prediction(answer, final_content, references, passages, tree, failure, spent, dropped, seconds)``.
            ``[n]`` in ``final_content`` is ``references[n-1]``; ``failure`` is None, or says why there is no
            answer, in which case ``answer`` is empty and the tree holds what was reasoned until then; ``dropped``
            lists what was left out of prompts so that they fit the LM's window.
        """
        began = time.perf_counter()
        tree = ReasoningTree(question=neutralise(question).strip()).watched_by(watch)
        with ledger() as kept, deadline(), asking(tree.question):
            try:
                _check_question(tree.question)
                prediction = self.reason(tree, answer_style)
            except CallFailedError as error:
                self._add_where(error)
                prediction = _failed(tree, error.failure)
        tree.watched_by(None)
        prediction.spent, prediction.dropped = kept.spent, tuple(kept.dropped)
        prediction.seconds = time.perf_counter() - began
        return prediction

    def retrieve(self, query: str, k: int) -> list[Passage]:
        """The retriever's passages; its failure is the question's."""
        retriever = self.retriever
        if retriever is None:
            raise CallFailedError("retrieval", f"{self.name} needs a retriever; give it one, or --retriever INDEX")
        check_deadline("a search")
        # one in this process is not left alone with its thread: it ends, and its threads have pools of their own
        seconds = time_left() if retriever.remote else inf
        try:
            return within(seconds, lambda: retriever(query, k))
        except AbandonedError as error:
            raise CallFailedError("deadline", f"the question's time was over during a search: {error}") from error
        except Exception as error:
            raise CallFailedError("retrieval", f"{type(error).__name__}: {error}") from error

    def _add_where(self, error: CallFailedError) -> None:
        """Add to a failure which program it was, which step and which predictor."""
        predict = error.predict
        if predict is None:
            error.add_where(program=self.name, step=raised_in(error))
            return
        path = next((path for path, one in self.named_predictors() if one is predict), predict.signature.__name__)
        step, _, predictor = path.rpartition(".")
        error.add_where(program=self.name, step=step, predictor=predictor)

    def kind_of(self, step: TraceStep) -> str:
        """What kind of step it is, among those of its predictor: demonstrations should show each kind."""
        return ""

    def judgements(self, step: TraceStep) -> list[Judgement]:
        """Which passages a step kept or turned away: one that contradicts the gold passages demonstrates nothing."""
        return []

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """A copy with demonstrations of its own. Teleprompters copy programs often; an index is never copied."""
        for shared in (self.retriever, getattr(self, "reader", None)):
            if shared is not None and not isinstance(shared, dspy.Module):
                memo[id(shared)] = shared
        clone = type(self).__new__(type(self))
        memo[id(self)] = clone
        # every LM call made so far, prompts and all: as it grows, it would be most of what a teleprompter does
        clone.__dict__.update(copy.deepcopy({**self.__dict__, "history": []}, memo))
        return clone

    def deepcopy(self) -> Program:
        """As ``copy.deepcopy``: dspy's own goes attribute by attribute and would copy the index."""
        return copy.deepcopy(self)


def answered(
    tree: ReasoningTree, answer: str, final_content: str, references: list[Passage], **fields: Any
) -> dspy.Prediction:
    """The prediction of a question that was answered."""
    return dspy.Prediction(
        answer=answer,
        final_content=final_content,
        references=references,
        passages=fields.pop("passages", tree.passages()),
        tree=tree,
        failure=None,
        **fields,
    )


def _failed(tree: ReasoningTree, failure: Failure) -> dspy.Prediction:
    return dspy.Prediction(
        answer="", final_content="", references=[], passages=tree.passages(), tree=tree, failure=failure
    )


def _check_question(question: str) -> None:
    if not question:
        raise CallFailedError("question", "the question is empty; ask something")
    words = len(question.split())
    if words > MAX_QUESTION_WORDS:
        raise CallFailedError("question", f"the question has {words} words; at most {MAX_QUESTION_WORDS} are read")
