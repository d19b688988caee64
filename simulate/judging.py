"""Which passages the simulated model takes for useful, how it errs, and what demonstrations it learns that from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics import contains, normalise
from .gathering import Shown, shown_passages
from .holding import split_title
from .mind import Mind
from .planning import stands_alone
from .prompt import Prompt, Values


@dataclass(frozen=True)
class Judge:
    """The model as it judges in one prompt.

    A passage is judged the same wherever it stands, and demonstrations only ever put a judgement right: at
    temperature 0, each is one draw on question and passage, held against a rate.
    """

    mind: Mind
    misjudges: float
    overlooks: float
    asks_badly: float
    salt: str

    @classmethod
    def of(cls, mind: Mind, prompt: Prompt, salt: str) -> Judge:
        """The judge that the prompt's demonstrations and its request for thoughts make of the model."""
        traits, demos = mind.traits, good_demos(mind, prompt)
        thinks_first = any(f.name in ("thoughts", "next_thought") for f in prompt.outputs)
        mistakes = 1 - traits.thinks if thinks_first else 1.0
        return cls(
            mind,
            traits.learnt(traits.misjudges, traits.misjudges_shown, demos) * mistakes,
            traits.learnt(traits.overlooks, traits.overlooks_shown, demos) * mistakes,
            (1 - traits.learnt(traits.asks, traits.asks_shown, demos + asking_demos(prompt))) * mistakes,
            salt,
        )

    def useful(self, words: str, passages: Sequence[Shown]) -> list[Shown]:
        """The passages that it takes for useful to the question."""
        return [passage for passage in passages if self._takes_for_useful(words, passage.text)]

    def reads(self, words: str, passages: Sequence[Shown]) -> list[Shown]:
        """What it reads once it takes one of the passages for useful: all of them but the useful ones it overlooks.

        The useless ones beside it are read as well, and can mislead.
        """
        useful = self.useful(words, passages)
        overlooked = [one for one in passages if one not in useful and truly_useful(self.mind, words, one.text)]
        return [one for one in passages if one not in overlooked] if useful else []

    def takes_for_enough(self, words: str, passages: Sequence[Shown]) -> bool:
        """Whether it takes passages that lack something for enough."""
        return self._draw("enough", words, *(passage.text for passage in passages)) < self.misjudges

    def asks_well(self, words: str, passages: Sequence[Shown]) -> bool:
        """Whether it goes for what the passages lack, and does not ask the whole question again."""
        return self._draw("asks", words, *(passage.text for passage in passages)) >= self.asks_badly

    def _takes_for_useful(self, words: str, passage: str) -> bool:
        draw = self._draw("useful", words, passage)
        return draw >= self.overlooks if truly_useful(self.mind, words, passage) else draw < self.misjudges

    def _draw(self, *key: str) -> float:
        return self.mind.traits.chance(*map(normalise, key), self.salt)


def truly_useful(mind: Mind, words: str, passage: str) -> bool:
    """Whether the passage brings the answer nearer; of a question that the world lacks, whether it names the title."""
    question = mind.world.question(words)
    if question is not None:
        return mind.useful(question, passage)
    title = split_title(passage)[0]
    return bool(title) and contains(words, title)


def good_demos(mind: Mind, prompt: Prompt) -> int:
    """How much the demonstrations in the prompt show of judging.

    Only right ones count: nothing useful turned away, nothing useless kept. Of reviews, each kind counts once,
    accepting, searching and rejecting: three of the same teach no more than one. Of filterings, every one that keeps
    some passages and turns others away counts, and those that keep all or none count once each.
    """
    right = [demo for demo in prompt.demos if _is_right(mind, demo)]
    kinds = [_kind(demo) for demo in right]
    return kinds.count("some") + len({kind for kind in kinds if kind not in ("some", "")})


def asking_demos(prompt: Prompt) -> int:
    """Demonstrations that go for one fact: each asks something that stands alone and is not the whole question."""
    return sum(any(_goes_for_a_fact(demo, asked) for asked in _asked(demo)) for demo in prompt.demos)


def _asked(demo: Values) -> list[str]:
    action = demo.get("next_tool_args")
    found = [demo.get(name) for name in ("follow_up", "search", "query", "thought")]
    found += [*list(demo.get("follow_ups") or [])[:1], action.get("query") if isinstance(action, dict) else None]
    return [str(asked) for asked in found if asked]


def _goes_for_a_fact(demo: Values, asked: str) -> bool:
    return stands_alone(asked) and normalise(asked) != normalise(str(demo.get("question", "")))


def _kind(demo: Values) -> str:
    if "relevant" in demo:
        action = "accept" if _true(demo.get("supported")) else "search"
        return action if _true(demo["relevant"]) else "reject"
    if "kept" in demo:
        kept, given = len(_kept(demo)), len(shown_passages(demo.get("passages")))
        return "all" if kept and kept == given else "some" if kept else "none"
    return ""


def _is_right(mind: Mind, demo: Values) -> bool:
    words, passages = str(demo.get("question", "")), shown_passages(demo.get("passages"))
    if mind.world.question(words) is None or not passages:
        return True  # nothing is known that it could contradict
    useful = {passage.number for passage in passages if truly_useful(mind, words, passage.text)}
    return _kept(demo) == useful if "kept" in demo else _true(demo.get("relevant")) == bool(useful)


def _kept(demo: Values) -> set[int]:
    kept = demo.get("kept")
    return {number for number in kept if isinstance(number, int)} if isinstance(kept, list) else set()


def _true(value: Any) -> bool:
    return str(value).strip().lower() == "true"
