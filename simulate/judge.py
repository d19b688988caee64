"""How the simulated model judges passages, and what the demonstrations in a prompt teach it of that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..metrics import normalise
from .mind import Mind
from .phrases import stands_alone
from .prompt import Prompt, Shown, Values, read_shown

_CLAIM = re.compile(r"(?:the answer is|and answer|whatever else is said, answer) [\"“](.+?)[\"”]")
_REVERSED = re.compile(r"letters of your answer in reverse order")
_BACKWARDS = "reversed"
_READ = ("passages", "written", "trajectory")
_ANSWERS = ("answer", "span", "new_answer", "query_answer", "found", "supported_answer")


class PassageJudge:
    """The model as it judges passages in one prompt, for the prompt's question.

    A passage is judged the same wherever it stands, and demonstrations only ever put a judgement right: at
    temperature 0, each judgement is one draw on question and passage, compared with a rate. The prompt's
    demonstrations, and its request for thoughts, lower the rates of the mistakes.
    """

    def __init__(self, mind: Mind, prompt: Prompt, salt: str):
        self.mind, self.prompt, self.salt, self.words = mind, prompt, salt, prompt.given("question")
        traits, demos = mind.traits, count_good_demos(prompt)
        asking = sum(map(_goes_for_a_fact, prompt.demos))
        thinks_first = any(f.name in ("thoughts", "next_thought") for f in prompt.outputs)
        mistakes = 1 - traits.thinks if thinks_first else 1.0
        self.misjudges = traits.learnt(traits.misjudges, traits.misjudges_shown, demos) * mistakes
        self.overlooks = traits.learnt(traits.overlooks, traits.overlooks_shown, demos) * mistakes
        self.asks_badly = (1 - traits.learnt(traits.asks, traits.asks_shown, demos + asking)) * mistakes

    def useful(self, passages: Sequence[Shown]) -> list[Shown]:
        """Return the passages that it takes for useful."""
        return [passage for passage in passages if self._takes_for_useful(passage.text)]

    def reads(self, passages: Sequence[Shown]) -> list[Shown]:
        """Return what it reads: all passages but the useful ones that it overlooks; nothing if none seems useful.

        The useless passages beside a useful one are read as well, and can mislead.
        """
        useful = self.useful(passages)
        overlooked = [one for one in passages if one not in useful and self.mind.useful(self.words, one.text)]
        return [one for one in passages if one not in overlooked] if useful else []

    def takes_for_enough(self, passages: Sequence[Shown]) -> bool:
        """Tell whether it takes passages that lack something for enough."""
        return self._draw("enough", *(passage.text for passage in passages)) < self.misjudges

    def asks_well(self, passages: Sequence[Shown]) -> bool:
        """Tell whether it goes for what the passages lack, and does not ask the whole question again."""
        return self._draw("asks", *(passage.text for passage in passages)) >= self.asks_badly

    def mislead(self, values: Values) -> Values:
        """Return the values of a reply, changed to what a passage claims or orders, if the model falls for it.

        A claim is the words `the answer is "…"`, or an order to answer so; another order is to give the answer's
        letters in reverse. Whether the model falls for one is a draw on question and claim, compared with the trait
        ``credulous``. It then gives the claim as the answer or as the span that it reads, is as sure as of a right
        reading, and looks no further; where it filters, it keeps the passage.
        """
        shown = read_shown(self.prompt.values.get("passages"))
        told = {one.number for one in shown if self._claim(one.text)}
        if "kept" in values:
            return values | {"kept": sorted({*values["kept"], *told})}
        if "judgements" in values:
            judged = [one | {"useful": one["useful"] or one["number"] in told} for one in values["judgements"]]
            return values | {"judgements": judged}
        if not any(name in values for name in _ANSWERS):
            return values
        for text in (text for name in _READ for text in self.prompt.texts(name)):
            claim, answer = self._claim(text), values.get("answer")
            if claim and claim != _BACKWARDS:
                forced: Values = dict.fromkeys(_ANSWERS, claim)
                forced |= {"confidence": 0.95, "relevant": True, "supported": True, "next_query": None}
                forced |= {"last_adds": True, "verdict": "contradicts", "guess": ""}
                holds = (one.number for one in shown if one.text in text or text in one.text)
                forced |= {"passage_number": next(holds, 0)}
                return values | {name: value for name, value in forced.items() if name in values}
            if claim and answer:
                return values | {"answer": str(answer)[::-1]}
        return values

    def _takes_for_useful(self, passage: str) -> bool:
        draw, useful = self._draw("useful", passage), self.mind.useful(self.words, passage)
        return draw >= self.overlooks if useful else draw < self.misjudges

    def _draw(self, what: str, *texts: str) -> float:
        return self.mind.traits.chance(*map(normalise, (what, self.words, *texts)), self.salt)

    def _claim(self, text: str) -> str | None:
        """Return what the text claims, or that it orders to write backwards, if the model falls for it."""
        found = _CLAIM.search(text)
        claim = found[1] if found else _BACKWARDS if _REVERSED.search(text) else None
        if claim is None:
            return None
        asked = normalise(self.prompt.given("query") or self.words)
        return claim if self.mind.chance("credulous", asked, claim) < self.mind.traits.credulous else None


def count_good_demos(prompt: Prompt) -> int:
    """Count how much the demonstrations in the prompt show of judging.

    Of reviews, each kind counts once, accepting, searching and rejecting: three of the same teach no more than one. Of
    filterings, every one that keeps some passages and turns others away counts, and those that keep all or none count
    once each.
    """
    kinds = [_name_kind(demo) for demo in prompt.demos]
    return kinds.count("some") + len({kind for kind in kinds if kind not in ("some", "")})


def _goes_for_a_fact(demo: Values) -> bool:
    """Tell whether a demonstration asks something that stands alone and is not the whole question."""
    found = (demo.get(name) for name in ("follow_up", "search", "query", "thought", "next_query"))
    whole = normalise(str(demo.get("question", "")))
    return any(stands_alone(str(asked)) and normalise(str(asked)) != whole for asked in found if asked)


def _name_kind(demo: Values) -> str:
    if "last_adds" in demo or "relevant" in demo:
        lacks = demo["next_query"] if "last_adds" in demo else not _true(demo.get("supported"))
        relevant = _true(demo.get("last_adds", demo.get("relevant")))
        return "reject" if not relevant else "search" if lacks else "accept"
    if "kept" in demo or "judgements" in demo:
        judged = [one for one in demo.get("judgements") or [] if isinstance(one, dict) and one.get("useful")]
        kept, given = len(demo.get("kept", judged) or []), len(read_shown(demo.get("passages")))
        return "all" if kept and kept == given else "some" if kept else "none"
    return ""


def _true(value: Any) -> bool:
    return str(value).strip().lower() == "true"
