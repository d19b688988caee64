"""A real model's recorded plans, memories and readings in the place of simulated ones."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy

from ..common.placeholders import numbers_in
from ..data import Question
from ..metrics import contains, normalise
from .engine import lm_of
from .mind import NOTHING_READ, Mind, SpanReading, Traits
from .recordings import (
    FLAGS_BELOW,
    RecordedNode,
    Recording,
    Said,
    add_titles,
    adopt_plan,
    measure_traits,
    read_recordings,
)
from .world import World, is_gold, remembered, supports, unknown_of


class RecordedMind(Mind):
    """A mind that plans, remembers and reads as the recorded model did.

    - Its plan is the recorded tree, whatever demonstrations the prompt holds.
    - Its memory of a recorded query is the closed-book answer, or none where its log-probability is under
      `FLAGS_BELOW`: the recorded model itself never said that it did not know.
    - Its reading of a passage is the open-book answer where the passage supports the question, and its confidence is
      the mean token probability. The recording does not say which passages stood in the prompt, and has no reading
      of any other passage: in those it finds nothing.
    - A passage supports a question or a step if it is a gold one, and of the step's title; by its title alone where
      the gold passages are not known (`remembered`).
    - It takes a passage for useful if the passage supports a step, and the open-book answer to that step
      was not "Unknown". Where plan and annotation do not align, any supporting passage is useful, and answers those
      steps whose open-book answer stands in it.
    - What it writes from memory, as a passage or step by step towards an answer, is the closed-book answer of the
      leaves, sure or not. Asked outright, it gives the root's. In a sample, it writes it with the mean probability of
      its tokens, and otherwise a wrong answer of the same kind.
    - Which subquestion it asks next, when it stops, and what it looks up, follows from the plan and these readings.
    - Four mistakes were not recorded, and are left to the traits: it stops too soon, asks the whole question instead
      of what is missing, takes a useless passage for useful, or too little for enough.
    - Where another answer than the recorded one leads to a query that was never recorded, the annotated step in the
      plan's words is asked, and known, invented and read at the model's own rates (`measure_traits`).

    Args:
        questions: with their annotation.
        recordings: by question id.
        traits: malformed replies, citing, latency and the rates for queries that were not recorded; measured
            from the recordings where None.
    """

    kind = "recorded"

    def __init__(self, questions: Sequence[Question], recordings: dict[str, Recording], traits: Traits | None = None):
        questions = [remembered(add_titles(question)) for question in questions]
        planned = [adopt_plan(question, recordings[question.id]) for question in questions]
        super().__init__(World(planned), traits or measure_traits(questions, recordings))
        self.recordings, self.annotated = recordings, tuple(questions)
        self._nodes: dict[str, tuple[RecordedNode, Question]] = {}
        for question in planned:
            for node in recordings[question.id].nodes:
                self._nodes.setdefault(normalise(node.query), (node, question))

    @property
    def fingerprint(self) -> str:
        """Return a hash of the questions, the recordings and the traits."""
        state = {
            "traits": json.loads(self.traits.identity()),
            "flags_below": FLAGS_BELOW,
            "questions": [q.model_dump(mode="json", exclude=unknown_of(q)) for q in self.annotated],
            "recordings": {q.id: self.recordings[q.id].model_dump(mode="json") for q in self.annotated},
        }
        return f"{int(self.traits.chance('mind', json.dumps(state, sort_keys=True)) * 2**32):08x}"

    def believes(self, query: str) -> str | None:
        """Return the recorded memory, if the model was sure enough of it."""
        said = self._memory(query)
        if said is None:
            return super().believes(query)
        return said.answer if said.known and said.logprob >= FLAGS_BELOW else None

    def recalls(self, query: str) -> str | None:
        """Return the recorded memory, sure or not; in a sample, as often as its tokens are probable."""
        said = self._memory(query)
        if said is None or not said.known:
            return super().recalls(query)
        if self.salt and self.chance("again", normalise(query)) >= math.exp(said.logprob):
            return self._invent(query, self.world.fact(query)) or said.answer
        return said.answer

    def half_knows(self, query: str) -> str | None:
        """Return the recorded memory, sure or not."""
        said = self._memory(query)
        return super().half_knows(query) if said is None else said.answer if said.known else None

    def reads(self, query: str, passage: str) -> SpanReading:
        """Return the recorded reading, if the passage is one that supports the step."""
        found = self._nodes.get(normalise(query))
        if found is None:
            return super().reads(query, passage)
        node, question = found
        return self._read_node(node) if is_gold(passage, question) else NOTHING_READ

    def takes(self, question: Question, index: int, query: str, passage: str) -> SpanReading:
        """Return the recorded reading, if the passage is the step's own.

        Where it is not known which passage that is, a gold passage counts if it holds what was read.
        """
        title = question.steps[index].support_title
        if title is not None:
            supported = supports(passage, [title], question.gold_passages)
            return self.reads(query, passage) if supported else NOTHING_READ
        node = self.recordings[question.id].below[index]
        stands = is_gold(passage, question) and contains(passage, node.open_book.answer)
        return self._read_node(node) if stands else NOTHING_READ

    def useful(self, words: str, passage: str) -> bool:
        """Tell whether the passage supports a step that the model could answer with it."""
        question = self.world.question(words)
        if question is None:
            return super().useful(words, passage)
        below = self.recordings[question.id].below
        steps = [(step.support_title, node) for step, node in zip(question.steps, below, strict=True)]
        if not any(title for title, _ in steps):
            return is_gold(passage, question)
        gold = question.gold_passages
        return any(title and supports(passage, [title], gold) and node.open_book.known for title, node in steps)

    def concludes(self, question: Question, answers: Sequence[str | None]) -> str | None:
        """Return the recorded conclusion, where the path's last answer cannot be the question's.

        - Where the last query stays unsolved, it is the model's memory of the whole question, as it stands.
        - Where no query asks for the answer (comparisons), it is the model's prediction if the path holds every answer
          that its readings gave, and else that memory.
        - Everywhere else the path decides, and so what was retrieved.
        """
        recording = self.recordings[question.id]
        memory = recording.nodes[-1].closed_book.answer
        if not answers or answers[-1] is None:
            return memory
        if len(question.steps) < 2 or numbers_in(question.steps[-1].question):
            return None
        read = [node.open_book.answer for node in recording.nodes[:-1] if node.open_book.known]
        as_read = all(any(contains(answer or "", one) for answer in answers) for one in read)
        return recording.prediction if as_read else memory

    def _memory(self, query: str) -> Said | None:
        found = self._nodes.get(normalise(query))
        return None if found is None else found[0].closed_book

    def _read_node(self, node: RecordedNode) -> SpanReading:
        if not node.open_book.known:
            return NOTHING_READ
        return SpanReading(node.open_book.answer, round(min(math.exp(node.open_book.logprob), 1.0), 3))


def recorded_lm(path: Path | str, **settings: Any) -> dspy.LM:
    """Return an LM that says what a real one said, as the file has it; ``settings`` are those of `dspy.LM`.

    Raises:
        QuestreeError: if the file cannot be read as questions with recordings.
    """
    return lm_of(RecordedMind(*read_recordings(Path(path))), **settings)
