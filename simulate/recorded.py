"""A real model's recorded plans, memories and readings in the place of simulated ones."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, ValidationError

from ..data import AnnotatedStep, Question, read_questions
from ..metrics import contains, normalise
from ..retrieval.errors import QuestreeError
from .describing import refers_to
from .engine import lm_of
from .mind import Mind, Reading, split_title
from .traits import Traits
from .world import World

FLAGS_BELOW = -0.15
"""Mean token log-probability under which a memory counts as flagged. Of the 374 recorded sub-questions that align
with annotated steps, 35 % are right from memory; this flags 42 %, of which 15 % were right; of the rest, 50 % are."""

_EARLIER = re.compile(r"#\d+|<\d+>")


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True)

    answer: str
    logprob: float

    @property
    def known(self) -> bool:
        return not self.answer.lower().startswith("unknown")


class RecordedNode(BaseModel):
    """A sub-question of a recorded tree; ``#n`` in its template is the answer of its n-th sibling."""

    model_config = ConfigDict(frozen=True)

    index: int
    query_template: str
    query: str
    children: tuple[int, ...] = ()
    parent: int | None = None
    closed_book: _Said
    open_book: _Said


class Recording(BaseModel):
    """What a model said on one question: a tree of sub-questions, children before parents, the question last."""

    model_config = ConfigDict(frozen=True)

    model: str
    prediction: str
    nodes: tuple[RecordedNode, ...]

    def outline(self) -> list[str]:
        """Every sub-question below the root in order; ``#n`` is the n-th of this list.

        Inner nodes are part of it: they were asked and answered, and later siblings refer to their answers.
        """
        below = [node for node in self.nodes if node.parent is not None] or [self.nodes[-1]]
        place = {node.index: number for number, node in enumerate(below, start=1)}
        parents = {node.index: node for node in self.nodes}

        def renumbered(node: RecordedNode) -> str:
            siblings = parents[node.parent].children if node.parent is not None else ()

            def reference(found: re.Match[str]) -> str:
                sibling = int(found[0].strip("#<>")) - 1
                known = 0 <= sibling < len(siblings) and place[siblings[sibling]] < place[node.index]
                return f"#{place[siblings[sibling]]}" if known else "it"

            return _EARLIER.sub(reference, node.query_template)

        return [renumbered(node) for node in below]


class RecordedMind(Mind):
    """A mind that plans, remembers and reads as the recorded model did.

    - Its plan is the recorded tree, whatever demonstrations the prompt holds.
    - Its memory of a recorded query is the closed-book answer, or none where its log-probability is under
      ``flags_below``: the recorded model itself never said that it did not know.
    - Its reading of a passage is the open-book answer where the passage supports the question, and its confidence
      the mean token probability. The recording does not say which passages stood in the prompt, and has no reading
      of any other passage: those it finds empty.
    - Where another answer than the recorded one leads on to a query that was never recorded, the annotated step in
      the plan's words is asked, and known, invented and read at the model's own rates (`measured_traits`).

    Args:
        questions: with their annotation.
        recordings: by question id.
        traits: malformed replies, citing, latency and the rates for queries that were not recorded; measured
            from the recordings where None.
        flags_below: see `FLAGS_BELOW`.
    """

    kind = "recorded"

    def __init__(
        self,
        questions: Sequence[Question],
        recordings: dict[str, Recording],
        traits: Traits | None = None,
        flags_below: float = FLAGS_BELOW,
    ):
        questions = [_with_all_titles(question) for question in questions]
        planned = [_as_planned(question, recordings[question.id]) for question in questions]
        super().__init__(World(planned), traits or measured_traits(questions, recordings, flags_below))
        self.recordings, self.flags_below, self.annotated = recordings, flags_below, tuple(questions)
        self._nodes: dict[str, tuple[RecordedNode, tuple[str, ...]]] = {}
        for question in planned:
            for node in recordings[question.id].nodes:
                self._nodes.setdefault(normalise(node.query), (node, question.gold_titles))

    @property
    def fingerprint(self) -> str:
        """Of the questions, the recordings and the settings."""
        return f"{int(self.traits.chance('mind', json.dumps(self.to_state(), sort_keys=True)) * 2**32):08x}"

    def believes(self, query: str) -> str | None:
        """The recorded memory, if the model was sure enough of it."""
        found = self._nodes.get(normalise(query))
        if found is None:
            return super().believes(query)
        said = found[0].closed_book
        return said.answer if said.known and said.logprob >= self.flags_below else None

    def reads(self, query: str, passage: str) -> Reading:
        """The recorded reading, if the passage is one that supports the step."""
        found = self._nodes.get(normalise(query))
        if found is None:
            return super().reads(query, passage)
        node, titles = found
        supports = normalise(split_title(passage)[0]) in {normalise(title) for title in titles}
        if not supports or not node.open_book.known:
            return Reading("", 0.0)
        return Reading(node.open_book.answer, round(min(math.exp(node.open_book.logprob), 1.0), 3))

    def concludes(self, question: Question, answers: Sequence[str | None]) -> str | None:
        """The recorded conclusion, where the path's last answer cannot be the question's.

        Where the last query stays unsolved: the model's memory of the whole question, as it stands. Where no query
        asks for the answer (comparisons): its prediction if the path holds every answer that its readings gave, else
        that memory. Everywhere else the path decides, and so what was retrieved.
        """
        recording = self.recordings[question.id]
        memory = recording.nodes[-1].closed_book.answer
        if not answers or answers[-1] is None:
            return memory
        if len(question.steps) < 2 or refers_to(question.steps[-1].question):
            return None
        read = [node.open_book.answer for node in recording.nodes[:-1] if node.open_book.known]
        as_read = all(any(contains(answer or "", one) for answer in answers) for one in read)
        return recording.prediction if as_read else memory

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "traits": self.traits.model_dump(),
            "flags_below": self.flags_below,
            "questions": [q.model_dump(mode="json", exclude={"paragraphs"}) for q in self.annotated],
            "recordings": {q.id: self.recordings[q.id].model_dump(mode="json") for q in self.annotated},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RecordedMind:
        """The mind whose `to_state` this is."""
        return cls(
            [Question.model_validate(row) for row in state["questions"]],
            {name: Recording.model_validate(row) for name, row in state["recordings"].items()},
            Traits.model_validate(state["traits"]),
            state["flags_below"],
        )


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


def recorded_lm(
    path: Path | str, traits: Traits | None = None, flags_below: float = FLAGS_BELOW, **settings: Any
) -> dspy.LM:
    """An LM that says what a real one said, as the file has it; ``settings`` are those of `dspy.LM`.

    Raises:
        QuestreeError: if the file cannot be read as questions with recordings.
    """
    questions, recordings = read_recordings(Path(path))
    return lm_of(RecordedMind(questions, recordings, traits, flags_below), **settings)


def measured_traits(questions: Sequence[Question], recordings: dict[str, Recording], flags_below: float) -> Traits:
    """The recorded model's own rates, over the sub-questions that align with annotated steps.

    ``knows``: sure and right. ``invents``: sure and wrong, of those not known. ``reads``: right with passages, as
    they were given to it. Plans are always its own, replies always well formed.
    """
    sure = right = read = count = 0
    for question in questions:
        recording = recordings[question.id]
        if not _align(question, recording.outline()):
            continue
        for step, node in zip(question.steps, recording.nodes, strict=False):
            if not step.answer:
                continue
            confident = node.closed_book.known and node.closed_book.logprob >= flags_below
            count += 1
            sure += confident
            right += confident and contains(node.closed_book.answer, step.answer)
            read += contains(node.open_book.answer, step.answer)
    fallback = Traits(plans=1, plans_shown=1, misreads=0, malformed=0)
    if not count:
        return fallback
    invents = (sure - right) / max(count - right, 1)
    return fallback.model_copy(update={"knows": right / count, "invents": invents, "reads": read / count})


def _align(question: Question, outline: list[str]) -> bool:
    """Whether plan and annotation go the same way: as many queries, each leaning on the same earlier ones."""
    annotated = [sorted(refers_to(step.question)) for step in question.steps]
    return annotated == [sorted(refers_to(query)) for query in outline]


def _with_all_titles(question: Question) -> Question:
    """The question with the passages of its steps among its gold passages, where a data set keeps them apart."""
    of_steps = [step.support_title for step in question.steps if step.support_title]
    return question.model_copy(update={"gold_titles": tuple(dict.fromkeys([*question.gold_titles, *of_steps]))})


def _as_planned(question: Question, recording: Recording) -> Question:
    """The question with the recorded plan for its steps, annotated where the two align.

    Where they do not, the last query is taken to ask for the answer, and the others have none.
    """
    outline = recording.outline()
    if _align(question, outline):
        steps = [
            step.model_copy(update={"question": words}) for step, words in zip(question.steps, outline, strict=True)
        ]
    else:
        steps = [AnnotatedStep(question=words) for words in outline]
        steps[-1] = AnnotatedStep(question=outline[-1], answer=question.answers[0])
    return question.model_copy(update={"steps": tuple(steps)})
