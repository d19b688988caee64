"""The simulated model: its traits, and by them what it remembers, how it reads, and how it lays a question out."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..data import Question
from ..metrics import contains, normalise
from .prompt import split_title
from .world import World, WorldFact, find_answer, find_kind, is_gold

T = TypeVar("T")
Share = Annotated[float, Field(ge=0, le=1)]
_NAMES = re.compile(r"[^\W\d_a-z][\w'’-]*(?: (?:of |the )?[^\W\d_a-z][\w'’-]*)*|\d[\d,.]*\d|\d")


class Traits(BaseModel):
    """Every trait of the simulated model.

    A trait ``…_shown`` is the trait with ``demos_enough`` good demonstrations in the prompt; in between it is linear.

    Attributes:
        knows: share of the facts that it knows, in whatever prompt they are asked.
        invents: share of the other facts for which it states a wrong answer instead of none.
        reads: share of the passages with the answer that it reads right. Its confidence is then .85 to .99; where it
            reads them wrong, .4 to .95, so that most wrong spans are recognised, but not all.
        misreads: share of the passages without the answer in which it sees one, at a confidence of .8 to .95;
            in the others it sees none.
        plans: share of the questions that it decomposes well. A bad plan asks the whole question at once, leaves a
            step out, or stops short. A good demonstration lacks no output and holds a chain of two or more queries
            that each stand alone.
        cites: share of the marks that it does not forget; good demonstrations hold marks.
        demos_enough: good demonstrations after which more of them help no further.
        whim: share of plans whose quality depends on the wording of the prompt instead of the question alone.
        trusts: share of the corrections that it takes over from the passage; likewise, of the passages that
            contradict its memory, those that it keeps when it filters. With a topic to forget it keeps them all.
        completes: share of the facts that it writes down right when it has to write a passage from memory, or to think
            step by step without passages, the known ones first; the others it invents. So a chain of thought is
            sometimes right where an answer outright is not. A sample draws those that it is not sure of anew.
        misjudges: share of the useless passages that it takes for useful, and of the reviews of paths that lack
            something in which it takes them for enough; likewise where it decides whether to ask or search on. Which
            demonstrations are good ones: `judge.count_good_demos`.
        overlooks: share of the useful passages that it takes for useless.
        asks: share of the searches in which it goes for the fact that is missing; in the others it asks the whole
            question again.
        thinks: share of these last three kinds of mistake that it does not make where it is to write thoughts first.
        credulous: share of the claims and orders in passages that it falls for; see `judge.PassageJudge.mislead`.
        malformed: share of its replies that no adapter can parse.
        latency: seconds that each reply takes.
        seed: another seed is another model with the same traits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    knows: Share = 0.4
    invents: Share = 0.4
    reads: Share = 0.93
    misreads: Share = 0.05
    plans: Share = 0.4
    plans_shown: Share = 0.95
    cites: Share = 0.7
    cites_shown: Share = 0.98
    demos_enough: int = Field(default=3, ge=1)
    whim: Share = 0.15
    trusts: Share = 0.95
    completes: Share = 0.5
    misjudges: Share = 0.08
    misjudges_shown: Share = 0.02
    overlooks: Share = 0.12
    overlooks_shown: Share = 0.04
    asks: Share = 0.75
    asks_shown: Share = 0.97
    thinks: Share = 0.4
    credulous: Share = 0.0
    malformed: Share = 0.01
    latency: float = Field(default=0.0, ge=0)
    seed: int = 0

    def chance(self, *key: object) -> float:
        """Draw from [0, 1), by the seed and the key and nothing else."""
        digest = hashlib.blake2b("\x1f".join(map(str, (self.seed, *key))).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64

    def choice(self, options: Sequence[T], *key: object) -> T:
        """Return one of the options, drawn as by `chance`."""
        return options[int(self.chance(*key) * len(options))]

    def identity(self) -> str:
        """Return what identifies a model with these traits, as JSON; credulity only where there is any."""
        return self.model_dump_json(exclude=None if self.credulous else {"credulous"})

    def learnt(self, plain: float, shown: float, good_demos: int) -> float:
        """Return a trait, given how many good demonstrations of it are in the prompt."""
        return plain + (shown - plain) * min(good_demos, self.demos_enough) / self.demos_enough


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
