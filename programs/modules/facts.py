"""Evidence: the facts that the LM reads in passages, each proven by its quote, and what is still missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import dspy

from ...common.text import queries_in
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import by_value, stands_in
from ...metrics.quotes import proving_sentences, quoted_sentences
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.evidence import Fact, ReadEvidence
from ..comparisons import read_comparison, settle
from ..demonstrations import Judgement, note
from ..references import first_of, numbered, numbers_of
from . import StepModule

MOST_FACTS, MOST_QUERIES = 50, 8  # facts of one reply: a list question has one for each item
_TAG = re.compile(r"\s*(\[\d+]|\(unproven\))\s*$")


@dataclass(frozen=True)
class ReadFact:
    """A fact of a reply.

    Attributes:
        fact: one sentence.
        passage: the one that the LM names for it, or that its quote stands in; None if the LM recalls it.
        support: the sentences of the passage that prove it; None if its quote proves nothing.
    """

    fact: str
    passage: Passage | None = None
    support: str | None = None

    @property
    def proven(self) -> bool:
        """Return whether a quote proves it."""
        return self.support is not None


@dataclass(frozen=True)
class Findings:
    """The findings of one call.

    Attributes:
        facts: in their order.
        missing: queries; none if no searches are left.
        answer: the LM's, corrected by the values that it compares.
        sure: whether the answer is no guess.
        unread: how many facts of the reply exceed the limit and are ignored.
    """

    facts: list[ReadFact]
    missing: list[str]
    answer: str
    sure: bool
    unread: int = 0


class EvidenceReading(StepModule):
    """Reads the facts in passages, looks up their quotes, and compares their values."""

    def __init__(self) -> None:
        super().__init__()
        self.read = dspy.Predict(ReadEvidence)

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle,
        known: Sequence[ReadFact],
        passages: list[Passage],
        queries: list[str],
        searches_left: int,
    ) -> Findings:
        """Return what the LM reads in the passages; these include those of the facts known from the last call."""
        numbers = numbers_of(passages)
        reply = call(
            self.read,
            question=question,
            answer_style=answer_style,
            known_facts=[_told(fact, numbers) for fact in known],
            passages=numbered(passages),
            queries=queries,
            searches_left=searches_left,
        )
        shown = shown_of(passages, reply)
        listed = [fact for fact in map(untagged, reply.evidence) if fact.fact]
        unread, listed = len(listed[MOST_FACTS:]), listed[:MOST_FACTS]
        proven = {by_value(fact.fact): fact for fact in known if fact.proven}
        facts = [proven.get(by_value(fact.fact)) or prove(fact, shown, question) for fact in listed]
        misquoted = [
            fact.fact
            for fact, claim in zip(facts, listed, strict=True)
            if fact.passage and not fact.proven and quoted_sentences(claim.quote, fact.passage.text) is None
        ]
        missing = (queries_in(reply.searches) or misquoted)[:MOST_QUERIES] if searches_left else []
        cited = {fact.passage.id for fact in facts if fact.passage and fact.proven}
        judged = [Judgement([passage], True) for passage in shown if passage.id in cited]
        pairs = zip(facts, (first_of([claim.passage], shown) for claim in listed), strict=True)
        sound = all(fact in known or (fact.passage, fact.proven) == (named, named is not None) for fact, named in pairs)
        note(reply, "asks for more" if missing else "ends", judged, exemplary=sound and not (missing and reply.answer))
        return Findings(facts, missing, settled(reply.answer, reply.comparison, facts), reply.sure, unread)


def untagged(fact: Fact) -> Fact:
    """Return a fact without the tag that known facts have in the prompt: the LM may copy it."""
    return fact.model_copy(update={"fact": _TAG.sub("", fact.fact).strip()})


def prove(fact: Fact, passages: Sequence[Passage], question: str) -> ReadFact:
    """Return a fact with the passage that holds its quote and proves it: the one that it names, or else another one."""
    named = first_of([fact.passage], passages)
    for passage in [*([named] if named else []), *passages] if fact.quote else []:
        support = proving_sentences(fact.fact, fact.quote, passage.title, passage.text, question)
        if support:
            return ReadFact(fact.fact, passage, support)
    return ReadFact(fact.fact, named)


def settled(answer: str, compared: Sequence[str], facts: Sequence[ReadFact]) -> str:
    """Return the answer, corrected by a comparison of values if these stand in the sentences that prove the facts."""
    comparison = read_comparison(compared)
    supports = [fact.support for fact in facts if fact.support]
    values = [end for thing in comparison.of for end in thing.ends] if comparison else []
    all_stand = all(any(stands_in(support, value) for support in supports) for value in values)
    return settle(answer, comparison) if comparison and all_stand else answer


def _told(fact: ReadFact, numbers: dict[str, int]) -> str:
    number = numbers.get(fact.passage.id) if fact.passage and fact.proven else None
    return f"{fact.fact} [{number}]" if number else f"{fact.fact} (unproven)"
