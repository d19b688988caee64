"""Evidence chain: read first, ask only for what is missing, and prove each fact by its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import dspy
from pydantic import Field, field_validator

from ..common.text import queries_in
from ..lm.call import call
from ..lm.parallel import run_parallel
from ..metrics import all_stand_in, by_value, claim_terms, stands_in
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from ..signatures.evidence import ConfirmAnswer
from .answer import answer_items
from .demonstrations import note
from .modules.facts import EvidenceReading, Findings, ReadFact
from .program import Program, ProgramSettings, answered, as_answer
from .references import distinct, numbers_of, passages_of, without_copies
from .tree import Node, ReasoningTree


class EvidenceChainSettings(ProgramSettings):
    """How it reads and searches.

    Attributes:
        k: passages of the first search, with the question.
        k_more: passages of each further round of searches, shared among its queries.
        max_calls: calls that read, at most.
        confirm: whether a further call sees question, quotes and answer alone, and may ask for one more search.
    """

    k: int = Field(default=10, ge=1)
    k_more: int = Field(default=8, ge=1)
    max_calls: int = Field(default=3, ge=1)
    confirm: bool = False

    @field_validator("abstain", mode="before")
    @classmethod
    def _of_old(cls, given: Any) -> Any:
        """Read the former value of ``abstain``: whether a guess is left out."""
        return {True: "unsure", False: "off"}.get(given, given) if isinstance(given, bool) else given


class EvidenceChain(Program):
    """Reads what one search finds, searches only for missing facts, and proves facts by quotes (our own, 2026).

    The first search is made with the question: over linked retrieval it mostly brings the whole chain. One
    call lists the facts that lead to the answer, each with its passage and a quote, and asks for what is missing.
    Quotes are looked for in their passages, and dates and numbers compared, by rules. If nothing is missing, the
    question took one call. Else all queries are searched at once, and the next call sees the facts, their passages and
    the new ones. A search that brings nothing new ends it.
    """

    name = "evidence-chain"
    Settings = EvidenceChainSettings
    settings: EvidenceChainSettings

    def __init__(self, retriever: Retriever | None = None, settings: EvidenceChainSettings | None = None):
        super().__init__(retriever, settings)
        self.reading = EvidenceReading()
        if self.settings.confirm:
            self.confirmation = dspy.Predict(ConfirmAnswer)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Read and search until nothing is missing, a search brings nothing new, or the calls are spent."""
        question, queries, confirmed = tree.question, list[str](), not self.settings.confirm
        shown, searches_left = self.retrieve(question, self.settings.k), self.settings.max_calls - 1
        last = tree.grow(None, query=question, source="query", found=tuple(shown))
        facts = list[ReadFact]()
        while True:
            findings = self.reading(
                question=question,
                answer_style=answer_style,
                known=facts,
                passages=shown,
                queries=queries,
                searches_left=searches_left,
            )
            facts, waits = findings.facts, bool(findings.missing) and not findings.answer
            last = grow_facts(tree, last, facts, answer_items(findings.answer) if answer_style != "long" else [])
            missing = unlike(findings.missing, [question, *queries])
            if searches_left and not (missing or waits or confirmed):
                missing = unlike(self.confirm(question, findings), [question, *queries])
                confirmed = True
            found = run_parallel([partial(self.retrieve, query, self.settings.k_more) for query in missing])
            known, turns = passages_of(facts), zip_longest(*found)  # a query may fill places that others leave free
            next_shown = without_copies(distinct([known, *(list(filter(None, turn)) for turn in turns)]))
            next_shown = next_shown[: len(known) + self.settings.k_more]
            for query, passages in zip(missing, found, strict=True):
                read = tuple(passage for passage in passages if passage in next_shown)
                last = tree.grow(last, query=query, source="query", found=read, round=last.round + 1)
            queries = [*queries, *missing]
            if missing and not {passage.id for passage in next_shown} <= {passage.id for passage in shown}:
                shown, searches_left = next_shown, searches_left - 1
            elif waits:  # nothing new was found: it answers from what it has read
                searches_left = 0
            else:
                return self.conclude(tree, answer_style, findings, shown)

    def confirm(self, question: str, findings: Findings) -> list[str]:
        """Return a query for what the quotes lack; none if the answer follows from them alone."""
        quotes = [f"{fact.passage.title}: {fact.support}" for fact in findings.facts if fact.passage and fact.proven]
        reply = call(self.confirmation, question=question, quotes=quotes, proposed_answer=findings.answer)
        note(reply, "follows" if reply.follows else "lacks")
        return [] if reply.follows else queries_in([reply.lacking])

    def conclude(
        self, tree: ReasoningTree, answer_style: AnswerStyle, findings: Findings, shown: list[Passage]
    ) -> dspy.Prediction:
        """Return the prediction: proven facts as sentences with marks, then those from memory, then the conclusion."""
        proven = [fact for fact in findings.facts if fact.proven]
        references, marks = passages_of(proven), dict[str, str]()
        numbers = numbers_of(references)
        for fact in proven:
            if fact.passage:
                marks[fact.fact] = f"{marks.get(fact.fact, '')}[{numbers[fact.passage.id]}]"
        sentences = [f"{sentence.rstrip('. ')} {mark}." for sentence, mark in marks.items()]
        recalled = [f"From memory: {fact.fact.rstrip('. ')}." for fact in findings.facts if not fact.proven]
        answer = as_answer(findings.answer, references)
        left_out = answer_style == "list" and self.settings.abstain == "unsupported"  # guesses, item by item
        introduction = "So the answer is" if findings.sure or left_out else "A guess"
        conclusion = [f"{introduction}: {answer.rstrip('.')}."] if answer and answer_style != "long" else []
        cut = [f"{findings.unread} further facts of the reply were not read."] if findings.unread else []
        content = " ".join([*sentences, *recalled, *cut, *conclusion])
        return answered(tree, answer, content, references, findings.sure, passages=distinct([references, shown]))


def grow_facts(tree: ReasoningTree, last: Node, facts: Sequence[ReadFact], answers: Sequence[str]) -> Node:
    """Add the facts that the tree does not hold yet below its last node; return the new last one.

    The answer of a node is what its fact adds to the earlier ones (`_news`). If there are several ``answers``, it is
    the one that the fact names. A fact that was read in an earlier call gets its answer then.
    """
    there = {node.query: node for node in tree.nodes}
    for fact in facts:
        known = there.get(fact.fact)
        named = ", ".join(one for one in answers if stands_in(fact.fact, one) and not stands_in(tree.question, one))
        answer = (known and known.answer) or _news(fact, tree)
        answer = named if named and (len(answers) > 1 or answer == fact.fact) else answer
        if known is not None and (known.support or not fact.proven):
            if known.answer not in (None, answer):
                tree.update(known, answer=answer)
            continue
        last = tree.grow(
            last,
            query=fact.fact,
            answer=answer,
            source="completed" if fact.proven else "lm",
            passage=fact.passage if fact.proven else None,
            support=fact.support,
            round=last.round,
            replaces=None if known is None else known.id,
        )
    return last


def _news(fact: ReadFact, tree: ReasoningTree) -> str:
    """Return the names, numbers and dates of a fact that are not in earlier facts or the question; else the fact."""
    before = "; ".join([tree.question, *(node.answer or "" for node in tree.nodes)])
    terms = [term.rstrip(".,") for term in claim_terms(fact.fact)]
    return ", ".join(term for term in terms if not all_stand_in(before, term)) or fact.fact


def unlike(queries: Iterable[str], made: Sequence[str]) -> list[str]:
    """Return the queries that were not made yet, each once."""
    known = set(map(by_value, made))
    return [query for query in dict.fromkeys(queries) if by_value(query) not in known]
