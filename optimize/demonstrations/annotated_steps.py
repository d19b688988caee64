"""What an annotated question shows of each prompt: one function a signature, from the fields that annotations hold.

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
from .lessons import Fact, Lesson

Fields = dict[str, Any]
_CLAIM = {"SUPPORTS": "So the claim is right.", "REFUTES": "So the claim is wrong."}


def demonstrate(signature: type[dspy.Signature], lesson: Lesson) -> list[tuple[str, Fields]]:
    """Return what the lesson shows of a signature: each demonstration with its kind, and a value for each field."""
    name = signature.__name__
    of_facts = OF_FACTS.get(name) or (OF_ANSWERS.get(name) if lesson.whole else None)
    shown = of_facts or (OF_PLANS.get(name) if lesson.plan else None)
    given = {"question": lesson.question, "answer_style": lesson.answer_style, "answer": lesson.answer}
    return [
        (kind, describe_style({field: (given | fields)[field] for field in signature.fields}))
        for kind, fields in (shown(lesson) if shown else ())
    ]


Shown = Iterator[tuple[str, Fields]]


def _plan(lesson: Lesson) -> Shown:
    """Show a plan that recalls the first answer, and is sure of nothing."""
    recalled = [lesson.answers[0], *(None for _ in lesson.plan[1:])]
    steps = zip(lesson.plan, recalled, strict=True)
    yield "", {"planned_chain": [{"query": query, "recalled": answer, "sure": False} for query, answer in steps]}


def _sure_plan(lesson: Lesson) -> Shown:
    """Show a chain that answers all queries but the last."""
    answers = [*lesson.answers[:-1], None]
    yield "", {"chain": _chain(lesson, answers)}


def _whole_plan(lesson: Lesson) -> Shown:
    yield "", {"answered_plan": _chain(lesson, lesson.answers)}


def _subquestions(lesson: Lesson) -> Shown:
    yield "", {"subquestions": list(lesson.plan), "plan": list(lesson.plan)}


def _check(lesson: Lesson) -> Shown:
    """Show each step looked up, with its answer proposed, and without."""
    for fact in lesson.facts:
        passages = _ordered(lesson, [fact])
        number = passages.index(fact.passage) + 1
        found = {"query": fact.query, "passages": numbered(passages), "passage_number": number, "found": fact.answer}
        for kind, proposed in (("supports, none proposed", ""), ("supports", fact.answer)):
            yield kind, found | {"proposed_answer": proposed, "verdict": "supports", "remembered": ""}


def _read(lesson: Lesson) -> Shown:
    """Show each step read in its passage."""
    for fact in lesson.facts:
        yield "", {"query": fact.query, "passages": [fact.passage.shown()], "span": fact.answer, "confidence": 0.97}


def _trace(lesson: Lesson) -> Shown:
    steps = [
        {
            "query": fact.query,
            "answer": fact.answer,
            "mark": number,
            "title": fact.passage.title,
            "support": fact.passage.text,
            "sure": True,
        }
        for number, fact in enumerate(lesson.whole, start=1)
    ]
    yield "cites", {"steps": steps, "final_content": _concluded(lesson, range(1, len(steps) + 1))}


def _answer(lesson: Lesson) -> Shown:
    """Show the answer from the facts' passages among others."""
    passages = _ordered(lesson, lesson.whole)
    numbers = [passages.index(fact.passage) + 1 for fact in lesson.whole]
    yield "", {"passages": numbered(passages), "final_content": _concluded(lesson, numbers)}


def _read_evidence(lesson: Lesson) -> Shown:
    """Show that one call is enough where the passages say each fact."""
    passages = _ordered(lesson, lesson.whole)
    evidence = [
        {"fact": fact.passage.text, "passage": passages.index(fact.passage) + 1, "quote": fact.passage.text}
        for fact in lesson.whole
    ]
    told: Fields = {"known_facts": [], "queries": [], "searches_left": 2, "comparison": [], "searches": []}
    yield "ends at once", told | {"passages": numbered(passages), "evidence": evidence, "rests_on": "passages"}


def _fuse(lesson: Lesson) -> Shown:
    numbers = list(range(1, len(lesson.whole) + 1))
    told = {"analysis": _told(lesson.whole, numbers), "answer": lesson.answer, "references": numbers}
    passages = numbered([fact.passage for fact in lesson.whole])
    yield "", {"assertions": [told], "passages": passages, "final_content": _concluded(lesson, numbers)}


def _review_path(lesson: Lesson) -> Shown:
    """Show the path of all facts, which is enough."""
    facts = _told(lesson.whole, range(1, len(lesson.whole) + 1))
    told: Fields = {"facts": facts, "supported_answer": lesson.answer}
    told |= {"tried": [lesson.question, *(fact.query for fact in lesson.whole[1:])], "missing": "", "guess": ""}
    passages = numbered([fact.passage for fact in lesson.whole])
    yield "accept", told | {"passages": passages, "last_adds": True, "next_query": ""}


def _review(lesson: Lesson) -> Shown:
    """Show the same of the reviews that the paper has, and the path of the first fact, which needs the next."""
    facts = lesson.whole
    enough = {"relevant": True, "supported": True, "next_query": None, "thoughts": _said(facts)}
    yield "accept", enough | {"passages": numbered([fact.passage for fact in facts])}
    if len(facts) > 1:
        lacking = {"relevant": True, "supported": False, "answer": None, "thoughts": _said(facts[:1])}
        yield "search", lacking | {"passages": numbered([facts[0].passage]), "next_query": facts[1].query}


def _recall(lesson: Lesson) -> Shown:
    yield "", {"passage": _said(lesson.whole)}


def _judge(lesson: Lesson) -> Shown:
    """Show each passage judged: what it says is its own sentence."""
    passages, useful = _ordered(lesson, lesson.whole), [fact.passage for fact in lesson.whole]
    judged = [
        {"number": number, "says": one.text if one in useful else "", "useful": one in useful}
        for number, one in enumerate(passages, start=1)
    ]
    yield "some" if lesson.distractors else "all", {"passages": numbered(passages), "judgements": judged}


OF_PLANS: dict[str, Callable[[Lesson], Shown]] = {
    "PlanChain": _plan,
    "PlanSureChain": _sure_plan,
    "PlanWholeChain": _whole_plan,
    "SplitQuestion": _subquestions,
    "PlanSteps": _subquestions,
}
"""By the name of the signature: what a lesson shows whose steps all read well."""
OF_FACTS: dict[str, Callable[[Lesson], Shown]] = {"CheckStep": _check, "ReadPassage": _read}
"""What a lesson shows of each fact."""
OF_ANSWERS: dict[str, Callable[[Lesson], Shown]] = {
    "TraceAnswer": _trace,
    "AnswerWithKnowledge": _answer,
    "AnswerFromPassages": _answer,
    "FuseParagraphs": _answer,
    "ReadEvidence": _read_evidence,
    "FuseEvidence": _fuse,
    "FuseAnalyses": _fuse,
    "ReviewPath": _review_path,
    "ReviewParagraphs": _review,
    "ReviewParagraphsCoT": _review,
    "RecallPassage": _recall,
    "JudgePassages": _judge,
}
"""What a lesson shows that is whole."""


def _chain(lesson: Lesson, answers: Sequence[str | None]) -> list[Fields]:
    """Return the queries with the true answers of earlier ones in them, and these answers."""
    queries = [fill_in(query, lesson.answers) for query in lesson.plan]
    return [{"query": query, "answer": answer} for query, answer in zip(queries, answers, strict=True)]


def _ordered(lesson: Lesson, facts: Sequence[Fact]) -> list[Passage]:
    """Return the facts' passages among those that do not help, in an order that tells nothing."""
    passages = distinct([[fact.passage for fact in facts], lesson.distractors])
    return sorted(passages, key=lambda passage: passage.id)


def _said(facts: Sequence[Fact]) -> str:
    """Return the sentences of the facts."""
    return " ".join(fact.passage.text for fact in facts)


def _told(facts: Sequence[Fact], numbers: Sequence[int]) -> str:
    """Return the sentences of the facts, each with the mark of its passage."""
    marked = zip(facts, numbers, strict=True)
    return " ".join(f"{fact.passage.text.rstrip('.')} [{number}]." for fact, number in marked)


def _concluded(lesson: Lesson, numbers: Sequence[int]) -> str:
    """Return the facts with their marks, and what follows from them."""
    conclusion = _CLAIM.get(lesson.answer) or f"So the answer is {lesson.answer.rstrip('.')}."
    return f"{_told(lesson.whole, numbers)} {conclusion}"
