"""A question that was asked of a server: how far it is, what it grew, its answer, the passage behind each mark."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from ..lm.failure import Failure
from ..lm.spent import Spent
from ..metrics.citations import Mark, reference_marks, supporting_sentence, supports_fragment
from ..programs import ReasoningTree
from ..retrieval import Passage
from ..signatures import AnswerStyle

State = Literal["waiting", "running", "answered", "failed", "stopped"]


class Citation(BaseModel):
    """A mark in a final content, and what it stands for.

    Attributes:
        number: of the reference, from 1.
        start, end: where the mark stands in the content.
        claim: the words that it ends.
        title, passage: of the reference.
        sentence: the one of the passage that supports the claim; None if none says anything of it.
        weak: whether the passage lacks most of the claim's names and numbers (`questree.metrics.supports_fragment`).
    """

    number: int
    start: int
    end: int
    claim: str
    title: str
    passage: str
    sentence: str | None
    weak: bool


class AnsweredQuestion(BaseModel):
    """A question with what became of it.

    Attributes:
        tree: with the nodes so far.
        state: where it stands; the last three are final.
        seconds: since it was asked.
        answer, final_content, references, failure: as in a prediction.
        simulated: whether the LM is a simulated one.
        not_known: if a simulated LM cannot know the answer, what it knows.
    """

    tree: ReasoningTree
    state: State = "waiting"
    spent: Spent = Spent()
    seconds: float = 0.0
    answer: str = ""
    final_content: str = ""
    references: list[Passage] = Field(default_factory=list)
    failure: Failure | None = None
    simulated: bool = False
    not_known: str = ""

    @property
    def told(self) -> str:
        """Return the final content, or else the answer; where there is neither, a sentence that says so."""
        return self.final_content or self.answer or "No answer was found."

    @classmethod
    def of_prediction(cls, answered: Any, *, simulated: bool) -> AnsweredQuestion:
        """Return what a prediction or a record says; a record may be without a tree."""
        return AnsweredQuestion(
            tree=answered.tree or ReasoningTree(question=answered.question),
            state="answered" if answered.failure is None else "failed",
            spent=answered.spent,
            seconds=answered.seconds,
            answer=answered.answer,
            final_content=answered.final_content,
            references=list(answered.references),
            failure=answered.failure,
            simulated=simulated,
        )

    @property
    def finished(self) -> bool:
        """Return whether nothing more will come of it."""
        return self.state in ("answered", "failed", "stopped")

    def citations(self) -> list[Citation]:
        """Return what each mark of the final content stands for; a mark without a reference is left out."""
        return [self._citation(mark, passage) for mark, passage in self._cited()]

    def _cited(self) -> list[tuple[Mark, Passage]]:
        marks, cited = reference_marks(self.final_content), self.references
        return [(mark, cited[mark.number - 1]) for mark in marks if 1 <= mark.number <= len(cited)]

    def _is_weak(self, mark: Mark, passage: Passage) -> bool:
        return not supports_fragment(mark.fragment, f"{passage.title} {passage.text}", self.tree.question)

    def _citation(self, mark: Mark, passage: Passage) -> Citation:
        return Citation(
            number=mark.number,
            start=mark.start,
            end=mark.end,
            claim=mark.fragment,
            title=passage.title,
            passage=passage.text,
            sentence=supporting_sentence(mark.fragment, passage.text),
            weak=self._is_weak(mark, passage),
        )


class AskedQuestion(AnsweredQuestion):
    """A question that was asked of a server, with all that is known of it by now.

    Attributes:
        id: the end of its permalink.
        program: its name at the server.
        place: in the queue, from 1; None if it does not wait.
        said: the user's own words, if the question was restated from a conversation.
        kept: False if it could not be written: its page is lost when the server ends.
    """

    id: str
    program: str
    answer_style: AnswerStyle
    asked_at: datetime
    place: int | None = None
    said: str = ""
    kept: bool = True
