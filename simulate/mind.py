"""What the simulated model has in its head: memory, reading and outlines, each a function of its traits."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..data import Question
from ..metrics import contains, normalise
from .passages import find_answer, is_gold, split_title
from .traits import Traits
from .world import World, WorldFact, find_kind

_NAMES = re.compile(r"[^\W\d_a-z][\w'’-]*(?: (?:of |the )?[^\W\d_a-z][\w'’-]*)*|\d[\d,.]*\d|\d")


@dataclass(frozen=True)
class SpanReading:
    """What the model takes from a passage as the answer, and the confidence that it states (0 to 1)."""

    span: str
    confidence: float


NOTHING_READ = SpanReading("", 0.0)


class Mind:
    """A model that knows a share of a world's facts.

    Args:
        world: what is true.
        traits: what the model makes of it.
    """

    kind = "simulated"
    salt: tuple[str, ...] = ()
    """In a sample, what every draw of it depends on."""

    def __init__(self, world: World, traits: Traits):
        self.world = world
        self.traits = traits

    @property
    def fingerprint(self) -> str:
        """Return a hash of world and traits: minds with the same one reply the same."""
        return f"{int(self.traits.chance('mind', self.world.fingerprint, self.traits.identity()) * 2**32):08x}"

    def sample(self, salt: str) -> Mind:
        """Return the model in one sample; without a salt, the model itself.

        What it knows and how it takes a question apart stay the same, and all else is drawn anew. So wrong memories
        scatter over samples, and right ones agree.
        """
        if not salt:
            return self
        sample = copy.copy(self)
        sample.salt = (salt,)
        return sample

    def outline(self, question: Question) -> list[str]:
        """Return the queries of a good decomposition, with ``#n`` where the n-th answer goes."""
        return [step.question for step in question.steps] or [question.question]

    def believes(self, query: str) -> str | None:
        """Return the model's answer from memory, right or invented; None where it knows that it does not know."""
        fact = self.world.fact(query)
        if fact is not None and all(self._knows(need) for need in fact.needs):
            return fact.answers[0]
        if self.chance("invents", normalise(query)) >= self.traits.invents:
            return None
        return self._invent(query, fact)

    def recalls(self, query: str) -> str | None:
        """Return what the model writes when it has to write from memory, sure or not; None where it has no idea."""
        return self.half_knows(query) or self._invent(query, self.world.fact(query))

    def half_knows(self, query: str) -> str | None:
        """Return the answer that comes to mind, sure or not; None where none does."""
        fact = self.world.fact(query)
        if fact is not None and all(self._knows(need) or self._completes(need) for need in fact.needs):
            return fact.answers[0]
        return None

    def reads(self, query: str, passage: str) -> SpanReading:
        """Return the model's reading of a passage that is shown to it as ``title | text``."""
        key = (normalise(query), normalise(passage))
        fact = self.world.fact(query)
        span = find_answer(fact, passage) if fact else ""
        if span and self.chance("reads", *key) < self.traits.reads:
            return SpanReading(span, self._confidence(0.85, 0.99, *key))
        if span:
            return SpanReading(self._misread(query, passage, not_this=span), self._confidence(0.4, 0.95, *key))
        if self.chance("misreads", *key) < self.traits.misreads:
            return SpanReading(self._misread(query, passage), self._confidence(0.8, 0.95, *key))
        return SpanReading("", self._confidence(0.0, 0.3, *key))

    def takes(self, question: Question, index: int, query: str, passage: str) -> SpanReading:
        """Return the model's reading of a passage for one step of its outline, by its index and as it is asked."""
        return self.reads(query, passage)

    def useful(self, words: str, passage: str) -> bool:
        """Tell whether a passage brings the answer to a question nearer.

        It does if it is a gold passage and holds a step's answer; where the steps have no annotated answers, if it is
        a gold passage. For a question that the world does not have, it does if the question names its title.
        """
        question = self.world.question(words)
        if question is None:
            title = split_title(passage)[0]
            return bool(title) and contains(words, title)
        facts = [fact for step in question.resolved_steps() if (fact := self.world.fact(step.question))]
        return any(find_answer(fact, passage) for fact in facts) if facts else is_gold(passage, question)

    def concludes(self, question: Question, answers: Sequence[str | None]) -> str | None:
        """Return a conclusion of this mind's own from the answers on a path, in order; None where it has none."""
        return None

    def chance(self, *key: object) -> float:
        """Draw as `Traits.chance` does, and anew in each sample."""
        return self.traits.chance(*key, *self.salt)

    def _knows(self, key: str) -> bool:
        return self.traits.chance("knows", key) < self.traits.knows

    def _completes(self, key: str) -> bool:
        """Tell whether the model comes upon a fact that it is not sure of; a sample does as often, but on others."""
        knows, completes = self.traits.knows, self.traits.completes
        if not self.salt:
            return self.traits.chance("knows", key) < completes
        return knows < completes and self.chance("completes", key) < (completes - knows) / (1 - knows)

    def _invent(self, query: str, fact: WorldFact | None) -> str | None:
        """Return a wrong answer of the right kind; None where the world has none."""
        kind, true = (fact.kind, fact.answers) if fact else (find_kind(query), ())
        others = self.world.alike(kind, other_than=true)
        return self.traits.choice(others, "invention", normalise(query), *self.salt) if others else None

    def _misread(self, query: str, passage: str, not_this: str = "") -> str:
        """Return a name or number in the passage that is not the answer, of the answer's sort if there is one."""
        text = split_title(passage)[1]
        names = [found[0] for found in _NAMES.finditer(text)]
        wrong = [name for name in names if not contains(name, not_this) and not contains(query, name)]
        alike = [name for name in wrong if name[0].isdigit() == not_this[:1].isdigit()]
        options = alike or wrong or text.split()[:1] or [""]
        return self.traits.choice(options, "misreading", query, passage, *self.salt)

    def _confidence(self, low: float, high: float, *key: object) -> float:
        return round(low + (high - low) * self.chance("confidence", *key), 2)
