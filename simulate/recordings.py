"""What a real model said on questions: where it is read from, and what it says of that model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..common.errors import QuestreeError
from ..common.json_files import read_text
from ..common.placeholders import fill_in, numbers_in
from ..data import AnnotatedStep, Question, read_questions
from ..metrics import contains
from .mind import Traits

FLAGS_BELOW = -0.15
"""Mean token log-probability under which a memory counts as flagged. Of the 374 recorded sub-questions that align
with annotated steps, 35 % are right from memory; this flags 42 %, of which 15 % were right; of the rest, 50 % are."""


class Said(BaseModel):
    """An answer, with the mean log-probability of its tokens."""

    model_config = ConfigDict(frozen=True)

    answer: str
    logprob: float

    @property
    def known(self) -> bool:
        """Tell whether it is an answer at all."""
        return not self.answer.lower().startswith("unknown")


class RecordedNode(BaseModel):
    """A sub-question of a recorded tree; ``#n`` in its template is the answer of its n-th sibling."""

    model_config = ConfigDict(frozen=True)

    index: int
    query_template: str
    query: str
    children: tuple[int, ...] = ()
    parent: int | None = None
    closed_book: Said
    open_book: Said


class Recording(BaseModel):
    """What a model said on one question: a tree of sub-questions, children before parents, the question last."""

    model_config = ConfigDict(frozen=True)

    model: str
    prediction: str
    nodes: tuple[RecordedNode, ...]

    @property
    def below(self) -> list[RecordedNode]:
        """Return the nodes below the root, or the root where there are none.

        Inner nodes are part of them: they were asked and answered, and later siblings refer to their answers.
        """
        return [node for node in self.nodes if node.parent is not None] or [self.nodes[-1]]

    def outline(self) -> list[str]:
        """Return every sub-question below the root in order; ``#n`` is the n-th of this list."""
        below = self.below
        place = {node.index: number for number, node in enumerate(below, start=1)}
        parents = {node.index: node for node in self.nodes}

        def renumbered(node: RecordedNode) -> str:
            siblings = parents[node.parent].children if node.parent is not None else ()
            earlier = [f"#{place[one]}" if place[one] < place[node.index] else None for one in siblings]
            return fill_in(node.query_template, earlier, missing="it")

        return [renumbered(node) for node in below]


def read_recordings(path: Path) -> tuple[list[Question], dict[str, Recording]]:
    """Read questions with their recordings, from a JSONL file in which each row has both.

    Raises:
        QuestreeError: if a row has no recording, or one of another shape; the message names file and line.
    """
    questions, recordings = read_questions(path), dict[str, Recording]()
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        row = json.loads(line)
        try:
            recordings[str(row["id"])] = Recording.model_validate(row["recording"])
        except KeyError:
            raise QuestreeError(f"{path}, line {number}: no recording. A recorded LM needs one a question.") from None
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise QuestreeError(f"{path}, line {number}: recording.{where}: {fault['msg']}.") from None
    return questions, recordings


def measure_traits(questions: Sequence[Question], recordings: dict[str, Recording]) -> Traits:
    """Measure the recorded model's own rates, over the sub-questions that align with annotated steps.

    ``knows``: sure and right. ``invents``: sure and wrong, of those not known. ``completes``: right, sure or not.
    ``reads``: right with passages, as they were given to it. Plans and queries are always its own, and replies are
    always well formed. A passage that it could not read, it overlooks: no other is overlooked. It was never shown a
    passage to judge, so how often it takes a useless one for useful, or too little for enough, is the simulated
    model's rate.
    """
    pairs = [
        (node, step.answer)
        for question in questions
        if is_aligned(question, recordings[question.id].outline())
        for step, node in zip(question.steps, recordings[question.id].nodes, strict=False)
        if step.answer
    ]
    recalled = [contains(node.closed_book.answer, answer) for node, answer in pairs]
    sure = [node.closed_book.known and node.closed_book.logprob >= FLAGS_BELOW for node, _ in pairs]
    right = sum(one and other for one, other in zip(sure, recalled, strict=True))
    read, count = sum(contains(node.open_book.answer, answer) for node, answer in pairs), len(pairs)
    traits = Traits(
        plans=1, plans_shown=1, asks=1, asks_shown=1, overlooks=0, overlooks_shown=0, misreads=0, malformed=0
    )
    if not count:
        return traits
    invents = (sum(sure) - right) / max(count - right, 1)
    measured = {"knows": right / count, "invents": invents, "completes": sum(recalled) / count, "reads": read / count}
    return traits.model_copy(update=measured)


def is_aligned(question: Question, outline: list[str]) -> bool:
    """Tell whether plan and annotation go the same way: as many queries, each with the same earlier ones in it."""
    annotated = [sorted(numbers_in(step.question)) for step in question.steps]
    return annotated == [sorted(numbers_in(query)) for query in outline]


def add_titles(question: Question) -> Question:
    """Return the question with its steps' passages among its gold passages, where a data set keeps them apart."""
    of_steps = [step.support_title for step in question.steps if step.support_title]
    return question.model_copy(update={"gold_titles": tuple(dict.fromkeys([*question.gold_titles, *of_steps]))})


def adopt_plan(question: Question, recording: Recording) -> Question:
    """Return the question with the recorded plan for its steps, annotated where the two align.

    Where they do not, the last query is taken to ask for the answer, and the others have none.
    """
    outline = recording.outline()
    if is_aligned(question, outline):
        steps = [
            step.model_copy(update={"question": words}) for step, words in zip(question.steps, outline, strict=True)
        ]
    else:
        steps = [AnnotatedStep(question=words) for words in outline]
        steps[-1] = AnnotatedStep(question=outline[-1], answer=question.answers[0])
    return question.model_copy(update={"steps": tuple(steps)})
