"""Demonstrations of each prompt from an annotated question, made of the fields that annotations hold.

What annotations do not hold (a wrong memory, a search that missed, a guess) is shown by the demonstrations that were
written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dspy

from ...common.placeholders import fill_in
from ...programs.references import distinct, numbered
from ...retrieval import Passage
from ...signatures.answers import describe_style
from ...signatures.roles import Role, role_of
from .lessons import AnnotatedFact, AnnotatedLesson

Fields = dict[str, Any]
Shown = Iterator[tuple[str, Fields]]


def demonstrate(signature: type[dspy.Signature], lesson: AnnotatedLesson) -> list[tuple[str, Fields]]:
    """Return the demonstrations that the lesson gives for a signature: the kind of each, and a value for each field.

    There are none for a signature with a field that annotations do not hold.
    """
    role = role_of(signature)
    shown = _SHOW[role](lesson) if role else ()
    given = {"question": lesson.question, "answer_style": lesson.answer_style, "answer": lesson.answer}
    told = [(kind, given | fields) for kind, fields in shown]
    return [
        (kind, describe_style({name: fields[name] for name in signature.fields}))
        for kind, fields in told
        if fields.keys() >= signature.fields.keys()
    ]


def _plan(lesson: AnnotatedLesson) -> Shown:
    """Show the plan in each form: all answers recalled, but to be looked up; all but the last; or queries alone."""
    if not lesson.plan:
        return
    queries = [fill_in(query, lesson.answers) for query in lesson.plan]
    answered = [{"query": query, "answer": answer} for query, answer in zip(queries, lesson.answers, strict=True)]
    recalled = zip(lesson.plan, lesson.answers, strict=True)
    planned = [{"query": query, "recalled": answer, "sure": False} for query, answer in recalled]
    plan = list(lesson.plan)
    chain = [*answered[:-1], answered[-1] | {"answer": None}]
    forms = {"planned_chain": planned, "chain": chain, "answered_plan": answered}
    yield "", forms | dict.fromkeys(("subquestions", "plan"), plan)


def _check(lesson: AnnotatedLesson) -> Shown:
    """Show each step looked up, with its answer proposed, and without."""
    for fact in lesson.facts:
        passages = _among_others(lesson, [fact])
        number = passages.index(fact.passage) + 1
        found = {"query": fact.query, "passages": numbered(passages), "passage_number": number, "found": fact.answer}
        for kind, proposed in (("supports, none proposed", ""), ("supports", fact.answer)):
            yield kind, found | {"proposed_answer": proposed, "verdict": "supports", "remembered": ""}


def _read(lesson: AnnotatedLesson) -> Shown:
    """Show each step read in its passage."""
    for fact in lesson.facts:
        yield "", {"query": fact.query, "passages": [fact.passage.shown()], "span": fact.answer, "confidence": 0.97}


def _find(lesson: AnnotatedLesson) -> Shown:
    """Show the facts found among other passages: quoted, judged, or told in the answer; no further search is needed."""
    if not lesson.whole:
        return
    passages, useful = _among_others(lesson, lesson.whole), [fact.passage for fact in lesson.whole]
    numbers = [passages.index(passage) + 1 for passage in useful]
    evidence = [
        {"fact": passage.text, "passage": number, "quote": passage.text}
        for passage, number in zip(useful, numbers, strict=True)
    ]
    judged = [
        {"number": number, "says": one.text if one in useful else "", "useful": one in useful}
        for number, one in enumerate(passages, start=1)
    ]
    yield (
        "some" if lesson.distractors else "all",
        {
            "passages": numbered(passages),
            **dict.fromkeys(("final_content", "facts"), facts_told(lesson.whole, numbers)),
            "supported_answer": lesson.answer,
            **dict.fromkeys(("missing", "recalled"), ""),
            "judgements": judged,
            "evidence": evidence,
            "sure": True,
            "searches_left": 2,
            **{name: [] for name in ("known_facts", "queries", "comparison", "searches")},
        },
    )


def _follow(lesson: AnnotatedLesson) -> Shown:
    """Show the facts' passages one after the other, and that they are enough."""
    if not lesson.whole:
        return
    facts, numbers = lesson.whole, list(range(1, len(lesson.whole) + 1))
    steps = [
        {
            "query": fact.query,
            "answer": fact.answer,
            "mark": number,
            "title": fact.passage.title,
            "support": fact.passage.text,
            "sure": True,
        }
        for fact, number in zip(facts, numbers, strict=True)
    ]
    told = facts_told(facts, numbers)
    yield (
        "accept",
        {
            "passages": numbered([fact.passage for fact in facts]),
            "final_content": told,
            "steps": steps,
            "assertions": [{"analysis": told, "answer": lesson.answer, "references": numbers}],
            "facts": told,
            "supported_answer": lesson.answer,
            "sure": True,
            "tried": [fact.query for fact in facts[1:]],
            "last_adds": True,
            **dict.fromkeys(("guess", "next_query"), ""),
            "passage": _said(facts),
        },
    )


def _review(lesson: AnnotatedLesson) -> Shown:
    """Show the same in the paper's reviews, and the first fact's passage, after which the next fact is searched."""
    if not lesson.whole:
        return
    facts, relevant = lesson.whole, {"relevant": True}
    passages = numbered([fact.passage for fact in facts])
    told = {"analysis": facts_told(facts, range(1, len(facts) + 1)), "thoughts": _said(facts)}
    enough = {"supported": True, "next_query": None, "passages": passages, **told}
    yield "accept", relevant | enough
    if len(facts) > 1:
        lacking = {
            "supported": False,
            "analysis": "",
            "answer": None,
            "thoughts": _said(facts[:1]),
            "passages": passages[:1],
        }
        yield "search", relevant | lacking | {"next_query": facts[1].query}


_SHOW: dict[Role, Callable[[AnnotatedLesson], Shown]] = {
    "the plan": _plan,
    "a step checked": _check,
    "a step read": _read,
    "facts among passages": _find,
    "facts in their order": _follow,
    "facts reviewed": _review,
}
"""The function for each role: it shows the plan if it reads well, each fact, or all facts where all can be told."""


def _among_others(lesson: AnnotatedLesson, facts: Sequence[AnnotatedFact]) -> list[Passage]:
    """Return the facts' passages among those that do not help, in an order that does not tell them apart."""
    passages = distinct([[fact.passage for fact in facts], lesson.distractors])
    return sorted(passages, key=lambda passage: passage.id)


def _said(facts: Sequence[AnnotatedFact]) -> str:
    """Return the sentences of the facts."""
    return " ".join(fact.passage.text for fact in facts)


def facts_told(facts: Sequence[AnnotatedFact], numbers: Sequence[int]) -> str:
    """Return the sentences of the facts, each with the mark of its passage."""
    marked = zip(facts, numbers, strict=True)
    return " ".join(f"{fact.passage.text.rstrip('.')} [{number}]." for fact, number in marked)
