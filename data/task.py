"""The task contract: what every data set is made into, and how a question gets its style and its split."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ..common.errors import QuestreeError
from ..common.placeholders import fill_in
from ..metrics import forms, normalise_title, passage_fingerprint, read_label

if TYPE_CHECKING:
    import dspy

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
_ENDS: tuple[tuple[Split, float], ...] = (("train", 0.4), ("dev", 0.7), ("test", 1.0))

Style = Literal["short", "yes-no", "label", "two-label", "long", "list"]
_STYLE_OF_TYPE: dict[str, Style] = {"boolean": "yes-no", "claim": "label", "long": "long", "long-form": "long"}

_LABELS = {"label": ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), "two-label": ("SUPPORTS", "REFUTES")}

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

_STRAY_SPACE = re.compile(r"\s+(?=[?,]|['’]s\b)")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, coerce_numbers_to_str=True)


def style_of_type(kind: object) -> Style:
    """Return the answer style of a question's type: short if the type says nothing of it, or is none."""
    return _STYLE_OF_TYPE.get(kind, "short") if isinstance(kind, str) else "short"


def split_by_hash(question: str) -> Split:
    """Return the split of a question that was published without one: 40 % train, 30 % dev, 30 % test.

    It follows from the question's words alone, whatever the seed, limit, file and id, so that no question that trained
    a program can score it: a data set may hold the same question under two ids (TREC does), and so may two files.
    """
    place = int.from_bytes(hashlib.sha256(f"split:{plain_words(question)}".encode()).digest()[:8], "big") / 2**64
    return next(split for split, end in _ENDS if place < end)


def plain_words(question: str) -> str:
    """Return the words by which two questions are the same."""
    return " ".join(question.lower().split())


def bare_words(question: str) -> str:
    """Return the words of a question without the mark at its end: what is the same question to an LM."""
    return plain_words(question).rstrip(" ?.!")


class AnnotatedStep(_Frozen):
    """One step of an annotated decomposition.

    Attributes:
        question: may hold ``#1`` (or ``<1>``) where the answer of the first step goes.
        answer: None if the data set does not give it.
        support_title: of the passage that holds the answer; None if it is not known.
    """

    question: Text
    answer: Text | None = None
    support_title: Text | None = None

    def in_words(self) -> AnnotatedStep:
        """Return the step with its query in ordinary words.

        MuSiQue writes relations (``Peer Gynt >> author``), and spaces before a question mark or a possessive s.
        """
        asked = self.question
        subject, arrow, relation = (part.strip() for part in asked.partition(">>"))
        if arrow and subject and relation:
            from .relations import relation_question  # few questions have a relation

            asked = relation_question(subject, relation)
        return self.model_copy(update={"question": _STRAY_SPACE.sub("", asked)})


class Paragraph(_Frozen):
    """A paragraph that the data set hands out with a question.

    Attributes:
        is_supporting: whether the answer rests on it.
        sentences: of a supporting paragraph, as the data set splits it; empty if it does not.
        supporting: the numbers, from 0, of those sentences that the answer rests on.
    """

    title: str = ""
    text: Text
    is_supporting: bool = False
    sentences: tuple[str, ...] = ()
    supporting: tuple[int, ...] = ()


class Question(_Frozen):
    """One question of a task. Immutable.

    Attributes:
        task: the data set that it comes from.
        question: its words; for fact checking, the claim.
        answers: any of them is right; the first is the canonical one. Of style ``list`` all are needed, and a file may
            have a list of spellings in the place of one. Empty: the corpus does not tell it.
        needed: of style ``list``, each item with its spellings; ``answers`` has the first of each. Follows from them.
        kind: the data set's own type of question (``type`` in a file).
        hops: how many facts it needs; None if the data set does not say.
        gold_titles: of the passages that support the answer.
        gold_passages: their ids in the corpus; may be empty.
        steps: the annotated decomposition, in order; may be empty.
        answers_are_regex: the answers are regular expressions (TREC).
        position: its row in the published split, from 1; None if that is not known.
        paragraphs: handed out with the question; may be empty.
        written_by: the LM that wrote it (`questree questions`).
        feedback: what a user said of a wrong answer to it, for optimizers that reflect.
    """

    id: Text
    task: Text
    question: Text
    answers: tuple[Text, ...]
    needed: tuple[tuple[Text, ...], ...] = ()
    kind: str | None = Field(default=None, alias="type")
    hops: int | None = Field(default=None, ge=1)
    gold_titles: tuple[Text, ...] = ()
    gold_passages: tuple[Text, ...] = ()
    steps: tuple[AnnotatedStep, ...] = ()
    answers_are_regex: bool = False
    style: Style
    split: Split
    position: int | None = Field(default=None, ge=1)
    paragraphs: tuple[Paragraph, ...] = ()
    written_by: str | None = None
    feedback: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_items(cls, given: Any) -> Any:
        answers = given.get("answers") if isinstance(given, dict) and not given.get("needed") else None
        if not isinstance(answers, list | tuple):
            return given
        needed = [tuple(one) if isinstance(one, list | tuple) else (one,) for one in answers]
        if given.get("style") != "list":
            if any(isinstance(one, list | tuple) for one in answers):
                raise ValueError("an answer with a list of spellings is for style 'list'")
            return given
        if given.get("answers_are_regex"):
            raise ValueError("the items of a list are texts, and no regular expressions")
        _check_items(needed)
        return {**given, "answers": [item[0] for item in needed], "needed": needed}

    @model_validator(mode="after")
    def _answers_fit(self) -> Question:
        if self.style == "yes-no" and any(a.lower() not in {"yes", "no"} for a in self.answers):
            raise ValueError(f"a yes-no question is answered yes or no, not {list(self.answers)}")
        labels = _LABELS.get(self.style, ())
        if labels and any(read_label(answer) not in labels for answer in self.answers):
            raise ValueError(f"a {self.style} question is answered {' or '.join(labels)}, not {list(self.answers)}")
        if self.answers_are_regex:
            from ..common import patterns  # only now: few tasks have any

            for answer in self.answers:
                try:
                    patterns.compiled(answer)
                except ValueError as error:
                    raise ValueError(f"answer {answer!r} is no regular expression: {error}") from None
        return self

    @property
    def items(self) -> tuple[tuple[str, ...], ...]:
        """Return what an answer has to hold: each item with the spellings of which any is right; none without one."""
        return self.needed or ((self.answers,) if self.answers else ())

    def resolved_steps(self) -> tuple[AnnotatedStep, ...]:
        """Return the steps with the answers of earlier steps filled in; a reference to no earlier answer stays."""
        return _resolved(self.steps)

    def known_gold(self) -> tuple[str, ...]:
        """Return what tells the gold passages from others: their ids, or else the supporting paragraphs' fingerprints.

        Empty if there are only titles, or if a gold title is that of no supporting paragraph: some would be missing.
        """
        supporting = [one for one in self.paragraphs if one.is_supporting]
        shown = {normalise_title(one.title) for one in supporting}
        if self.gold_passages or not shown.issuperset(map(normalise_title, self.gold_titles)):
            return self.gold_passages
        return tuple(dict.fromkeys(passage_fingerprint(one.title, one.text) for one in supporting))

    def gold_sentences(self) -> list[dict[str, Any]]:
        """Return the supporting paragraphs with their sentences; nothing if those of one are not known."""
        told = [one for one in self.paragraphs if one.is_supporting]
        known = {normalise_title(one.title) for one in told if one.supporting}
        if not known.issuperset(map(normalise_title, self.gold_titles)):
            return []
        return [one.model_dump(mode="json", exclude={"is_supporting"}) for one in told if one.supporting]

    def to_example(self) -> dspy.Example:
        """Return the question as DSPy trains and evaluates on it; a program is called with its two inputs.

        Inputs are ``question`` and ``answer_style``.
        """
        import dspy

        gold, told = self.known_gold(), self.gold_sentences()
        return dspy.Example(
            question=self.question,
            answer_style=self.style,
            answer="; ".join(self.answers if self.needed else self.answers[:1]),
            answers=list(self.answers),
            **({"needed": [list(item) for item in self.needed]} if self.needed else {}),
            answers_are_regex=self.answers_are_regex,
            id=self.id,
            kind=self.kind,
            hops=self.hops,
            gold_titles=list(self.gold_titles),
            **({"gold_passages": list(gold)} if gold else {}),
            **({"gold_sentences": told} if told else {}),
            **({"written_by": self.written_by} if self.written_by else {}),
            **({"feedback": self.feedback} if self.feedback else {}),
            annotated_steps=[step.in_words().model_dump() for step in self.steps],
        ).with_inputs("question", "answer_style")


def _check_items(needed: Sequence[tuple[object, ...]]) -> None:
    known: dict[str, int] = {}
    for number, item in enumerate(needed, start=1):
        if not all(str(spelling).strip() for spelling in item or ("",)):
            raise ValueError(f"item {number} of the list is empty, or has an empty spelling")
        told = {form for spelling in item for form in forms(str(spelling))}
        if twin := next((known[form] for form in sorted(told) if form in known), None):
            raise ValueError(f"item {number} of the list, {item[0]!r}, is item {twin} already")
        known |= dict.fromkeys(told, number)


def resolved_steps(example: Any) -> tuple[AnnotatedStep, ...]:
    """Return the annotated steps of an example as `Question.resolved_steps` does; none if it has none."""
    return _resolved([AnnotatedStep(**step) for step in getattr(example, "annotated_steps", None) or ()])


def _resolved(steps: Sequence[AnnotatedStep]) -> tuple[AnnotatedStep, ...]:
    answers = [step.answer for step in steps]
    filled = (fill_in(step.question, answers[:number]) for number, step in enumerate(steps))
    return tuple(step.model_copy(update={"question": question}) for step, question in zip(steps, filled, strict=True))


class Task(_Frozen):
    """Questions by split, and what belongs to them.

    Attributes:
        style: the answer style; ``mixed`` if the questions' own styles differ.
        metric: the name of the metric that the task is scored by.
        questions: by split, each in its seeded order.
        corpus: the file of passages that holds the gold passages; None if it is not known.
    """

    name: str
    style: Style | Literal["mixed"]
    metric: str
    questions: Mapping[Split, tuple[Question, ...]]
    corpus: Path | None = None
    licence: str = "not stated"
    citation: str = "not stated"
    source: str = "not stated"

    def __str__(self) -> str:
        """Return name, sizes, answer style and metric on a line."""
        sizes = ", ".join(f"{len(questions)} {split}" for split, questions in self.questions.items())
        return f"{self.name}: {sizes} questions; answers {self.style}, scored by {self.metric}"

    def split(self, name: str) -> tuple[Question, ...]:
        """Return the questions of a split.

        Raises:
            QuestreeError: if the task has none in it.
        """
        for split, questions in self.questions.items():
            if split == name and questions:
                return questions
        sizes = ", ".join(f"{split} ({len(questions)})" for split, questions in self.questions.items() if questions)
        raise QuestreeError(f"Task {self.name} has no questions in split {name!r}; it has: {sizes}.")

    def examples(self, split: str) -> list[dspy.Example]:
        """Return the questions of a split as DSPy examples.

        Raises:
            QuestreeError: if the task has none in it.
        """
        return [question.to_example() for question in self.split(split)]
