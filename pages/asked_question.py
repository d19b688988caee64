"""A question that was asked of a server: how far it is, what it grew, its answer, the passage behind each mark."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

import dspy
from pydantic import BaseModel, Field

from ..evaluation.records import Record
from ..metrics.citations import Mark, reference_marks
from ..metrics.claims import supports_fragment
from ..programs import ReasoningTree
from ..programs.answer import Answered
from ..programs.basis import Standing, basis, standing_of
from ..retrieval import Passage
from ..signatures import AnswerStyle
from .trees import Marked, Reasoning, passage_marked, reasoning

State = Literal["waiting", "running", "answered", "failed", "stopped"]


def state_after(answered: Answered) -> Literal["answered", "failed"]:
    """Return the state of a question whose program has ended."""
    return "answered" if answered.failure is None else "failed"


class Citation(BaseModel):
    """A mark in a final content, and what it stands for.

    Attributes:
        number: of the reference, from 1.
        start, end: where the mark stands in the content.
        claim: the words that it ends.
        title, passage, source: of the reference.
        sentence: the one of the passage that supports the claim, or several; None if none says anything of it.
        weak: whether the passage lacks most of the claim's names and numbers (`questree.metrics.supports_fragment`).
    """

    number: int
    start: int
    end: int
    claim: str
    title: str
    passage: str
    source: str
    sentence: str | None
    weak: bool

    @classmethod
    def of(cls, mark: Mark, passage: Passage, question: str) -> Citation:
        """Return what a mark stands for."""
        claim, title, text = mark.fragment, passage.title, passage.text
        sentence = " ".join(mark.shown(text, title)) or None
        weak = not supports_fragment(claim, f"{title} {text}", question)
        place: dict[str, Any] = {"number": mark.number, "start": mark.start, "end": mark.end}
        told: dict[str, Any] = {"title": title, "passage": text, "source": passage.source}
        return cls(**place, **told, claim=claim, sentence=sentence, weak=weak)


class Reference(NamedTuple):
    """A reference of an answer.

    Attributes:
        number: by which marks cite it.
        passage: itself.
        text: with the sentences marked that support a claim or a step.
        step: the number of the first step that rests on it; None if none does.
        before, after: what stands beside it in its document; empty where that is not known.
        opens: the address of what it comes from; empty where there is none.
    """

    number: int
    passage: Passage
    text: Marked
    step: int | None
    before: str = ""
    after: str = ""
    opens: str = ""


class ShownAnswer(Answered):
    """An answer as pages show it, found or still sought.

    Attributes:
        tree: with the nodes so far.
        seconds: since it was asked.
        state: where the question stands; the last three are final.
        simulated: whether the LM is a simulated one.
        not_known: if a simulated LM cannot know the answer, what it knows.
        doing: while it is sought, what is being done.
        writing: as much of the final content as is written; empty once it is whole.
    """

    tree: ReasoningTree
    state: State = "waiting"
    simulated: bool = False
    not_known: str = ""
    doing: str = ""
    writing: str = ""

    @property
    def told(self) -> str:
        """Return the final content, or else the answer; without an answer, also what came nearest."""
        if self.answer:
            return self.final_content or self.answer
        return f"{self.final_content} {self.standing}".strip()

    @classmethod
    def of_prediction(cls, said: dspy.Prediction | Record, *, simulated: bool) -> ShownAnswer:
        """Return what a prediction or a record says; a record may be without a tree."""
        answered = said if isinstance(said, Record) else Answered.of(said)
        tree = answered.tree or ReasoningTree(question=said.question)
        rests_on = answered.rests_on or basis(tree, answered.answer, answered.references)
        fields = answered.answer_fields | {"tree": tree, "rests_on": rests_on}
        return ShownAnswer(**fields, state=state_after(answered), simulated=simulated)

    def take(self, answered: Answered) -> None:
        """Put what a prediction says in the place of what was known so far."""
        for name in answered.model_fields_set:
            setattr(self, name, getattr(answered, name))

    @property
    def finished(self) -> bool:
        """Return whether nothing more will come of it."""
        return self.state in ("answered", "failed", "stopped")

    @property
    def standing(self) -> Standing:
        """Return how the answer stands."""
        return standing_of(self)

    @property
    def reasoning(self) -> Reasoning:
        """Return the tree as it is drawn."""
        return reasoning(self.tree, self.references, growing=not self.finished)

    def sources(self) -> list[Reference]:
        """Return the references, with the sentences marked that support a claim or a step."""
        claims, steps = self.citations(), self.reasoning.steps
        sources = []
        for number, passage in enumerate(self.references, start=1):
            resting = [step.node.support for step in steps if step.source == number]
            sentences = [*(one.sentence for one in claims if one.number == number), *resting]
            first = next((place for place, step in enumerate(steps, start=1) if step.source == number), None)
            marked = passage_marked(passage.text, sentences)
            sources.append(Reference(number, passage, marked, first, opens=passage.url))
        return sources

    def citations(self) -> list[Citation]:
        """Return what each mark of the final content stands for; a mark without a reference is left out."""
        marks, cited = reference_marks(self.final_content), self.references
        known = (mark for mark in marks if 1 <= mark.number <= len(cited))
        return [Citation.of(mark, cited[mark.number - 1], self.tree.question) for mark in known]


class AskedQuestion(ShownAnswer):
    """A question that was asked of a server, with all that is known of it by now.

    Attributes:
        id: the end of its permalink.
        program: its name at the server.
        place: in the queue, from 1; None if it does not wait.
        said: the user's own words, if the question was restated from a conversation.
        kept: False if it could not be written: its page is lost when the server ends.
        about: LM, index, program and settings, by name.
        helpful: what a user said of the answer; None if nobody did.
        note: the user's words with it.
        after: the id of the question that it goes on from; empty if there is none.
        trace: where its trace stands in MLflow's pages; empty if it was not traced.
    """

    id: str
    program: str
    answer_style: AnswerStyle
    asked_at: datetime
    place: int | None = None
    said: str = ""
    kept: bool = True
    about: dict[str, str] = Field(default_factory=dict)
    helpful: bool | None = None
    note: str = ""
    after: str = ""
    trace: str = ""
