"""What the simulated model is like, and the draws that make it so."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
Share = Annotated[float, Field(ge=0, le=1)]


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
