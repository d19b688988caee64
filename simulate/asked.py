"""What the simulated model is asked in one prompt, and what the passages there tell of it, step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..data import Question
from ..metrics import contains, normalise
from .mind import NOTHING_READ, Mind, SpanReading
from .phrases import find_stated, write_out
from .prompt import Prompt, Shown, read_shown, split_title
from .world import is_gold

if TYPE_CHECKING:
    from .judge import PassageJudge

Memory = Callable[[str], str | None]


class PathStep(NamedTuple):
    """A query on the way to the answer.

    Attributes:
        answer: None where it is not known.
    """

    query: str
    answer: str | None = None
    reference: int | None = None


@dataclass(frozen=True)
class Asked:
    """A prompt in the hands of the model that replies to it.

    Attributes:
        mind: the model, or the model in one sample (`sample`).
        salt: empty at temperature 0; otherwise what makes one sample differ from another.
    """

    mind: Mind
    prompt: Prompt
    salt: str = ""

    @cached_property
    def words(self) -> str:
        """Return the words of the question that the prompt is about."""
        return self.prompt.given("question")

    @cached_property
    def style(self) -> str:
        """Return the answer style that is asked for."""
        return str(self.prompt.values.get("answer_style", "short"))

    @cached_property
    def question(self) -> Question | None:
        """Return the question itself, if the model's world has it."""
        return self.mind.world.question(self.words)

    @cached_property
    def passages(self) -> list[Shown]:
        """Return the passages that the prompt shows."""
        return read_shown(self.prompt.values.get("passages"))

    @cached_property
    def judge(self) -> PassageJudge:
        """Return the model as it judges passages in this prompt."""
        from .judge import PassageJudge  # few prompts ask to judge any

        return PassageJudge(self.mind, self.prompt, self.salt)

    def sample(self) -> Asked:
        """Return the same, asked of the model in this sample: what it is not sure of is drawn anew."""
        return replace(self, mind=self.mind.sample(self.salt))

    def steps(self, name: str) -> list[PathStep]:
        """Return the steps of an input field that is a chain."""
        return read_steps(self.prompt.values.get(name))

    def remember(self, texts: Sequence[str]) -> Memory:
        """Return a memory of what was written before in the prompt, and else of what the model believes."""
        return lambda query: find_stated(query, texts) or self.mind.believes(query)

    def gather(self, passages: Sequence[Shown], memory: Memory | None = None) -> list[PathStep]:
        """Return the steps of the model's own outline, each with the answer that it reads.

        An answer that is read goes into the words of later steps, right or wrong; where there is none, the step is
        described. The memory answers, right or wrong, the queries that the passages do not answer. A question that the
        world does not have is one step. So is a question whose steps have no annotated answers, and all of its gold
        passages together answer it.
        """
        question = self.question
        if question is None or not any(step.answer for step in question.steps):
            answer, reference = self.read_whole(passages)
            return [PathStep(self.words, answer or (memory(self.words) if memory else None), reference)]
        steps: list[PathStep] = []
        templates = self.mind.outline(question)
        for index in range(len(templates)):
            query = write_out(templates, [step.answer for step in steps], index)
            readings = [(self.mind.takes(question, index, query, one.text), one.number) for one in passages]
            answer, reference = pick_surest(readings)
            if answer is None and memory is not None:
                answer = memory(query)
            steps.append(PathStep(query, answer, reference))
        return steps

    def read_whole(self, passages: Sequence[Shown]) -> tuple[str | None, int | None]:
        """Return the answer of a question without annotated answers, and the last gold passage, if all are there."""
        question = self.question
        if question is None:
            return None, None
        gold = [one for one in passages if is_gold(one.text, question)]
        titles = {normalise(split_title(passage.text)[0]) for passage in gold}
        texts = {one.text for one in gold}
        lacking = titles < set(map(normalise, question.gold_titles)) or len(texts) < len(question.gold_passages)
        draw = self.mind.chance("reads", normalise(question.question), *sorted(titles))
        if gold and not lacking and draw < self.mind.traits.reads:
            return question.answers[0], gold[-1].number
        return None, None

    def missing_query(self, steps: Sequence[PathStep], passages: Sequence[Shown]) -> str:
        """Return the query for the first fact that is not there.

        Where the outline is not known, it names a gold passage that is not there but is named in the question or in
        the passages that are.
        """
        words, question = self.words, self.question
        query = next((step.query for step in steps if not step.answer), words)
        if question is None or query != words:
            return query
        read = [words, *(passage.text for passage in passages)]
        there = {normalise(split_title(passage.text)[0]) for passage in passages if is_gold(passage.text, question)}
        lacking = [title for title in question.gold_titles if normalise(title) not in there]
        return next((f"{title}: {words}" for title in lacking if any(contains(text, title) for text in read)), words)

    def missing_queries(
        self, steps: Sequence[PathStep], passages: Sequence[Shown], before: Collection[str]
    ) -> list[str]:
        """Return the queries for what is missing and was not asked before, the whole question last.

        There are none where nothing is missing; ``steps`` are what is there, as `gather` gives it.
        """
        lacking = [step.query for step in steps if not step.answer]
        if not lacking:
            return []
        asked = {normalise(query) for query in before}
        every = dict.fromkeys([self.missing_query(steps, passages), *lacking, self.words])
        return [query for query in every if normalise(query) not in asked]


def read_steps(value: Any) -> list[PathStep]:
    """Return the steps of a field that is a chain; rows of another shape are left out."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return [PathStep(str(row.get("query", "")), _answer(row), row.get("mark")) for row in rows]


def _answer(row: dict[str, Any]) -> str | None:
    """Return the answer of a step in a prompt, if it has one; of a planned step, if the plan is sure of it."""
    answer = row.get("answer") or (row.get("recalled") if row.get("sure", True) else None)
    return str(answer) if answer else None


def pick_surest(readings: Sequence[tuple[SpanReading, int]]) -> tuple[str | None, int | None]:
    """Return the span that the model is most confident of, the first of equals, and its passage's number."""
    nothing = (NOTHING_READ, 0)
    best, number = max(readings, key=lambda found: (bool(found[0].span), found[0].confidence), default=nothing)
    return (best.span, number) if best.span else (None, None)
