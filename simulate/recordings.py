"""What a real model said on questions, and where it is read from."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..common.errors import QuestreeError
from ..common.placeholders import fill_in
from ..data import Question, read_questions


class Said(BaseModel):
    """An answer, with the mean log-probability of its tokens."""

    model_config = ConfigDict(frozen=True)

    answer: str
    logprob: float

    @property
    def known(self) -> bool:
        """Whether it is an answer at all."""
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
        """The nodes below the root, or the root where there are none.

        Inner nodes are part of them: they were asked and answered, and later siblings refer to their answers.
        """
        return [node for node in self.nodes if node.parent is not None] or [self.nodes[-1]]

    def outline(self) -> list[str]:
        """Every sub-question below the root in order; ``#n`` is the n-th of this list."""
        below = self.below
        place = {node.index: number for number, node in enumerate(below, start=1)}
        parents = {node.index: node for node in self.nodes}

        def renumbered(node: RecordedNode) -> str:
            siblings = parents[node.parent].children if node.parent is not None else ()
            earlier = [f"#{place[one]}" if place[one] < place[node.index] else None for one in siblings]
            return fill_in(node.query_template, earlier, missing="it")

        return [renumbered(node) for node in below]


def read_recordings(path: Path) -> tuple[list[Question], dict[str, Recording]]:
    """Questions with their recordings, from a JSONL file in which each row has both.

    Raises:
        QuestreeError: if a row has no recording, or one of another shape; the message names file and line.
    """
    questions, recordings = read_questions(path), dict[str, Recording]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
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
