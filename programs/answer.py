"""The answer to a question: the one list of fields that predictions, records, pages, APIs and tables share."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

import dspy
from pydantic import BaseModel, model_validator

from ..common.sentences import sentences, without_item_mark
from ..common.text import stated, unquoted
from ..lm.failure import Failure
from ..lm.spent import Spent
from ..metrics import by_value, marks_before_stops, normalise, stands_in, telling_sentence
from ..metrics.answer_scores import MARKS
from ..metrics.citations import reference_marks
from ..metrics.claims import items
from ..retrieval import Passage
from ..signatures import AnswerStyle
from .basis import Basis, basis, held_among
from .tree import ReasoningTree

Abstain = Literal["off", "unsupported", "unsure"]
"""Which answers are left out: none; those that no passage holds; guesses."""
_LEFT_OUT = {("unsure", "guess"), ("unsupported", "guess"), ("unsupported", "memory")}
_NO_LABEL = "NOT ENOUGH INFO"


class Answered(BaseModel):
    """A question's answer, how it came about and what it cost; a new field here appears everywhere.

    Attributes:
        answer: the short answer, the items of a list joined by "; "; empty if there is none.
        answers: its items: several only in the style ``list``; none without an answer.
        others: further answers that fit, according to the LM, if the question asks for one.
        nearest: the answer that was left out because the passages do not tell it (`Abstain`); empty if none was.
        rests_on: what decides it (`questree.programs.basis`); None without an answer.
        final_content: the answer as a text with marks.
        references: what the marks cite: ``[n]`` is ``references[n-1]``.
        tree: the reasoning; None if the program failed before there was any.
        failure: why there is no answer; None if the program did not fail.
        seconds: wall time of the question.
    """

    answer: str = ""
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    nearest: str = ""
    rests_on: Basis | None = None
    final_content: str = ""
    references: tuple[Passage, ...] = ()
    tree: ReasoningTree | None = None
    failure: Failure | None = None
    spent: Spent = Spent()
    seconds: float = 0.0

    @model_validator(mode="before")
    @classmethod
    def _with_items(cls, given: Any) -> Any:
        """Add the one item to an answer that was stored before answers had items."""
        old = isinstance(given, dict) and given.get("answer") and given.get("answers") is None
        return {**given, "answers": [given["answer"]]} if old else given

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> Answered:
        """Return the fields of a prediction; missing ones have their defaults.

        Raises:
            ValueError: if a field of the prediction is of another type.
        """
        fields = {name: prediction.get(name) for name in Answered.model_fields}
        return Answered(**{name: value for name, value in fields.items() if value is not None})

    @property
    def answer_fields(self) -> dict[str, Any]:
        """Return the fields of `Answered` alone, without those that a record or a page adds."""
        return {name: getattr(self, name) for name in Answered.model_fields}


def as_fields(prediction: dspy.Prediction) -> dict[str, Any]:
    """Return a prediction as values that JSON can hold."""
    return Answered.of(prediction).model_dump(mode="json")


def answer_items(text: str, titles: Collection[str] = ()) -> list[str]:
    """Return the items of a list as an LM writes one, each once by its value.

    They are those of a JSON list, or stand between semicolons or on lines. Without these, they stand between commas or
    before "and", unless the whole is a title: Trinidad and Tobago.

    Args:
        text: the answer.
        titles: of the passages that were found, in normal form (`normalise`).
    """
    try:
        given = json.loads(text) if text.startswith("[") else None
    except ValueError:
        given = None
    parts = [str(one) for one in given] if isinstance(given, list) else re.split(r"[;\n]", text)
    if len(parts) == 1 and not isinstance(given, list) and normalise(text) not in titles:
        parts = list(items(text))
    bare = stated(unquoted(without_item_mark(part.strip()).removeprefix("and ")) for part in parts)
    return list({by_value(one): one for one in reversed(bare)}.values())[::-1]


def settle_answer(said: dspy.Prediction, answer_style: AnswerStyle, abstain: Abstain) -> None:
    """Split an answer into its items, and leave out those that ``abstain`` names; the text adds other answers.

    The text lists the items that no passage holds. If the answer is left out, only sentences with marks remain.
    """
    whole, content = said.answer, said.final_content
    titles = {normalise(passage.title) for passage in said.tree.passages()}
    several = answer_style == "list" or (answer_style == "short" and "; " in whole and normalise(whole) not in titles)
    given = answer_items(whole, titles) if several else [whole] * bool(whole)
    answers, others = (given, []) if answer_style == "list" else (given[:1], given[1:])
    rests_on = said.get("rests_on") or basis(said.tree, "; ".join(answers), said.references, answers)
    unheld, gone = list[str](), list[str]()
    if answer_style == "list":
        held = held_among(said.tree, answers, said.references)
        unheld = [one for one in answers if one not in held]
    if abstain == "unsupported" and answer_style == "list":
        gone, rests_on = unheld, "passages"
    elif (abstain, rests_on) in _LEFT_OUT:
        gone, others = [one for one in given if one != _NO_LABEL], []
    answers = [one for one in answers if one not in gone]
    answer = "; ".join(answers)
    if gone and not answers:
        content = " ".join(one for one in sentences(marks_before_stops(content)) if MARKS.search(one))
    elif several:
        content = content.replace(whole, answer)
        for begins, named in (("Others fit as well", others), ("Not in a passage", unheld)):
            content += f" {begins}: {'; '.join(named)}." * bool(named and len(unheld) < len(given))
    if answer_style == "label" and not answers and said.failure is None:
        answer, answers = _NO_LABEL, [_NO_LABEL]
        rests_on = basis(said.tree, answer, said.references)
    told = {"answers": answers, "others": others, "nearest": "; ".join(gone), "final_content": content.strip()}
    for name, value in (told | {"answer": answer, "rests_on": rests_on if answers else None}).items():
        said[name] = value
    if answer_style == "list":
        grow_items(said.tree, answers, said.final_content, said.references)


def grow_items(tree: ReasoningTree, answers: Sequence[str], content: str, references: Sequence[Passage]) -> None:
    """Add a node for each item that a passage holds and no node has alone: below its passage, or at the path's end."""
    nodes = [*tree.nodes]
    known = {by_value(node.answer or "") for node in nodes}
    for item in (one for one in answers if by_value(one) not in known):
        passage, support = _source_of(item, tree.question, content, references)
        if passage is None:
            continue
        read = [node for node in nodes if node.passage and node.passage.id == passage.id]
        ends = any(node.ended for node in nodes)
        tree.grow(
            (read if ends and read else nodes)[-1] if nodes else None,
            query=tree.question,
            answer=item,
            source="completed",
            passage=passage,
            support=support,
            ended="accepted",
        )


def _source_of(
    item: str, question: str, content: str, references: Sequence[Passage]
) -> tuple[Passage | None, str | None]:
    """Return the passage that holds an item, and the sentence: of the last mark at it, else the first that does."""
    for mark in reversed(reference_marks(content)):
        if stands_in(mark.fragment, item) and 0 < mark.number <= len(references):
            passage = references[mark.number - 1]
            support = " ".join(mark.shown(passage.text, passage.title))
            if stands_in(support, item):
                return passage, support
    for passage in references:
        if stands_in(f"{passage.title} {passage.text}", item):
            return passage, telling_sentence(question, item, passage.title, passage.text)
    return None, None
