"""The common shapes of a reply, by the names of its fields: what is told, what is to be searched for, and the answer.

The baselines ask in these shapes. What a prompt shows is read wherever it stands: passages in a list or in a text,
statements in notes, thoughts or solved steps, queries that were made before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...common.placeholders import fill_in
from ..asked import Asked, Memory, PathStep, pick_surest
from ..phrases import describe, find_stated, mentions, write_fact
from ..prompt import Shown, Values
from . import TEXTS
from .answers import UNKNOWN, cites, conclude, write_steps

_ROW = re.compile(r"\[(\d+)\] ([^|\n]+? \| .*?)(?=; \[\d+\] |\]?$)", re.MULTILINE)
_MADE = re.compile(r"\[Search\((.*?)\) →")
_SEARCH = re.compile(r"^\[Search\(.*?\) → (.*)\]$", re.DOTALL)
_MARK = re.compile(r"\[(\d+)\]")


class Shapes:
    """A prompt as it is read for these shapes."""

    def __init__(self, asked: Asked):
        self.asked, self.prompt = asked.sample(), asked.prompt
        self.outputs = {one.name for one in asked.prompt.outputs}
        raw = [text for name in TEXTS for text in asked.prompt.texts(name)]
        self.texts = [_SEARCH.sub(r"\1", text) for text in raw]
        found = [Shown(int(number), text) for text in self.texts for number, text in _ROW.findall(text)]
        self.shown = list({one.number: one for one in [*self.asked.passages, *found]}.values())
        self.solved: dict[str, str | None] = {}
        for step in asked.steps("solved"):
            self.solved[self.filled(step.query)] = step.answer
        self.texts += [write_fact(query, answer) for query, answer in self.solved.items() if answer]
        rows = [row.rpartition(" → ")[0] or row for name in ("queries", "tried") for row in asked.prompt.texts(name)]
        self.made = [*rows, *(found for text in raw for found in _MADE.findall(text)), *self.solved]
        self.subquestion = self.filled(asked.prompt.given("query"))

    def filled(self, query: str) -> str:
        """Return the query with the answers of solved steps in it."""
        return fill_in(query, [answer or describe(earlier) for earlier, answer in self.solved.items()])

    @cached_property
    def found(self) -> list[PathStep]:
        """Return the steps with what is read or stated."""
        return self._marked(lambda query: find_stated(query, self.texts))

    @cached_property
    def known(self) -> list[PathStep]:
        """Return the steps with what is read, stated or remembered."""
        return self._marked(self.asked.remember(self.texts))

    @cached_property
    def query(self) -> str | None:
        """Return the query for the first fact that is missing and was not asked for; None where the model stops.

        It stops when nothing is missing, when it takes too little for enough (``misjudges``), and when it has asked
        for everything. Where it asks badly (``asks``), the whole question comes first.
        """
        words, judge = self.asked.words, self.asked.judge
        if self.solved.get(words) or self.prompt.values.get("searches_left") == 0:
            return None
        seen = self.shown or [Shown(place, text) for place, text in enumerate(self.solved, start=1)]
        # in a text that it writes, it searches for what it does not remember
        steps = self.known if "written" in self.prompt.values else self.found
        missing = self.asked.missing_queries(steps, seen, self.made)
        if not missing or (self.made and judge.takes_for_enough(seen)):
            return None
        return words if words in missing and not judge.asks_well(seen) else missing[0]

    @property
    def searches(self) -> bool:
        """Tell whether it searches in this turn, and so does not answer."""
        return "search" in self.outputs and bool(self.query)

    @property
    def answer(self) -> str:
        """Return the answer."""
        return conclude(self.asked, self.known)

    def _marked(self, memory: Memory) -> list[PathStep]:
        steps = self.asked.gather(self.shown, memory)
        return [step if step.reference else step._replace(reference=self.mark_of(step)) for step in steps]

    def mark_of(self, step: PathStep) -> int | None:
        """Return the mark that stands at the step's answer in the texts."""
        at = next((text for text in reversed(self.texts) if step.answer and find_stated(step.query, [text])), "")
        marks = _MARK.findall(at)
        return int(marks[0]) if len(marks) == 1 else None

    def new(self) -> list[str]:
        """Return the facts that are read in passages and that no text states with a mark, each as a sentence."""
        return [self.told(step) for step in self.found if step.reference and not self.mark_of(step)]

    def told(self, step: PathStep) -> str:
        """Return a step as a sentence, with its mark if the model does not forget it."""
        return write_fact(step.query, step.answer, step.reference if cites(self.asked, step.query) else None)

    def thought(self) -> str:
        """Return the next fact that was not told as a sentence, or the answer."""
        ahead = next((step for step in self.known if not mentions(step.query, self.texts)), None)
        return self.told(ahead) if ahead else f"So the answer is: {self.answer}."

    def read(self) -> tuple[str | None, int | None]:
        """Return what the passages say of the query in the prompt, and in which."""
        own = next((step for step in self.found if step.query == self.subquestion and step.reference), None)
        readings = [(self.asked.mind.reads(self.subquestion, one.text), one.number) for one in self.shown]
        return (own.answer, own.reference) if own else pick_surest(readings)


SHAPES: dict[str, Callable[[Shapes], Any]] = {
    "answer": lambda shapes: shapes.answer if not shapes.searches else None if "continuation" in shapes.outputs else "",
    "sure": lambda shapes: not shapes.searches and shapes.answer != UNKNOWN,
    "final_content": lambda shapes: "" if shapes.searches else write_steps(shapes.asked, shapes.known),
    "thoughts": lambda shapes: write_steps(shapes.asked, shapes.found, marks=False),
    "thought": Shapes.thought,
    "tentative": Shapes.thought,
    "continuation": Shapes.thought,
    "query": lambda shapes: shapes.query or "",
    **dict.fromkeys(("search", "follow_up"), lambda shapes: shapes.query),
    "follow_ups": lambda shapes: [shapes.query] if shapes.query else [],
    "complete": lambda shapes: not shapes.query,
    "next_thought": lambda shapes: f"What is missing: {shapes.query}" if shapes.query else "That is enough to answer.",
    "new_notes": Shapes.new,
    **dict.fromkeys(("summary", "finding"), lambda shapes: " ".join(shapes.new())),
    "query_answer": lambda shapes: shapes.read()[0] or shapes.asked.mind.believes(shapes.subquestion),
    "references": lambda shapes: [number] if (number := shapes.read()[1]) else [],
}
"""What each field holds, by its name."""


def respond_by_shape(asked: Asked) -> Values:
    """Return the values of those fields whose names are common."""
    shapes = Shapes(asked)
    return {name: SHAPES[name](shapes) for name in shapes.outputs & SHAPES.keys()}
