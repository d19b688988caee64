"""Passages as the simulated model reads, reviews and filters them, and what it writes from memory in their place."""

from __future__ import annotations

from ...data import Question
from ...metrics import contains, normalise
from ..asked import Asked
from ..mind import NOTHING_READ
from ..phrases import write_fact
from ..prompt import Values
from ..world import find_answer, find_kind
from .answers import UNKNOWN, conclude, write_steps

_TOPICS = {
    **dict.fromkeys(("who", "whom", "whose"), "people"),
    **dict.fromkeys(("where", "city", "town", "country", "state", "river"), "geography"),
    **dict.fromkeys(("when", "year", "how long"), "history"),
    **dict.fromkeys(("number", "how many"), "figures"),
}
_NOTHING = "None of the passages is about what the question needs."


def restate(asked: Asked) -> Values:
    """Return the question as it is: what it goes back to in a conversation is not understood."""
    return {"restated": asked.prompt.values["question"]}


def read_passage(asked: Asked) -> Values:
    """Return the reading, of several, that the model is most confident of."""
    query, passages = asked.prompt.given("query"), asked.prompt.values.get("passages") or []
    readings = [asked.mind.reads(query, str(passage)) for passage in passages]
    best = max(readings, key=lambda reading: (bool(reading.span), reading.confidence), default=NOTHING_READ)
    return {"span": best.span, "confidence": best.confidence}


def review_paragraphs(asked: Asked) -> Values:
    """Review the passages: relevant if one seems useful, supported if every step is read in them, or seems to be."""
    judge, passages = asked.judge, asked.passages
    read = judge.reads(passages)
    steps = asked.gather(read)
    lacking = any(not step.answer for step in steps)
    answer = UNKNOWN
    if read and not lacking:
        answer = conclude(asked, steps)
    elif read and judge.takes_for_enough(passages):
        answer = conclude(asked, asked.gather(read, memory=asked.mind.believes))
    supported = answer != UNKNOWN  # a model that has no answer to give does not accept
    query = asked.missing_query(steps, passages) if judge.asks_well(passages) else asked.words
    return {
        "thoughts": write_steps(asked, steps, marks=False) if read else _NOTHING,
        "relevant": bool(read),
        "supported": supported,
        "analysis": write_steps(asked, steps) if supported else "",
        "answer": answer if supported else None,
        "next_query": None if supported else query,
    }


def review_path(asked: Asked) -> Values:
    """Tell the facts of a path, whether the last passage gives one, and what is to be searched for next."""
    reviewed, judge, passages = review_paragraphs(asked), asked.judge, asked.passages
    read = judge.reads(passages)
    items = reviewed["answer"]
    if not items and asked.question and asked.question.style == "list" and read:  # a path proves a part
        items = conclude(asked, asked.gather(read)).replace(UNKNOWN, "")
    query = "" if reviewed["supported"] else str(reviewed["next_query"])
    if normalise(query) in {normalise(one) for one in [asked.words, *asked.prompt.texts("tried")]}:
        query = ""
    return {
        "facts": write_steps(asked, [step for step in asked.gather(read) if step.answer]),
        "last_adds": bool(judge.useful(passages[-1:])),
        "next_query": query,
        "guess": _write(query, asked.mind.recalls(query)) if query else "",
        "supported_answer": items or "",
    }


def draft_answer(asked: Asked) -> Values:
    """Tell the facts of the passages, and answer; where they do not seem enough, write what is remembered of others.

    That is what the model is sure of, else what it half knows.
    """
    reviewed, steps = review_paragraphs(asked), asked.gather(asked.passages)
    told = (asked.gather(asked.passages, memory=memory) for memory in (asked.mind.believes, asked.mind.recalls))
    others = [[step for step in remembered if not step.reference] for remembered in told]
    recalled = next((some for some in others if any(step.answer for step in some)), [])
    return {
        "facts": write_steps(asked, [step for step in steps if step.answer]),
        "supported_answer": reviewed["answer"] or "",
        "missing": "" if reviewed["supported"] else " ".join(step.query for step in steps if not step.answer),
        "recalled": "" if reviewed["supported"] else " ".join(_write(step.query, step.answer) for step in recalled),
    }


def complete_paragraphs(asked: Asked) -> Values:
    """Write the first fact that the passages lack from memory: right, invented, or only named."""
    judge, passages = asked.judge, asked.passages
    steps = asked.gather(judge.reads(passages))
    query = asked.missing_query(steps, passages) if judge.asks_well(passages) else asked.words
    return {"thoughts": f"It is not said: {query}", "information": _write(query, asked.mind.recalls(query))}


def recall_passage(asked: Asked) -> Values:
    """Write a passage from memory that answers the question, fact by fact."""
    asked = asked.sample()
    steps = asked.gather([], memory=asked.mind.recalls)
    return {"passage": " ".join(_write(step.query, step.answer) for step in steps)}


def name_topic(asked: Asked) -> Values:
    """Return the field that the question asks about, by its words."""
    return {"topic": _TOPICS.get(find_kind(asked.words), "general knowledge")}


def filter_knowledge(asked: Asked) -> Values:
    """Return the passages that seem useful, but for those that the model's memory makes it doubt.

    A model that is told to forget the topic doubts none.
    """
    useful, question = asked.judge.useful(asked.passages), asked.question
    forgets = "topic" in {f.name for f in asked.prompt.inputs}
    kept = [one.number for one in useful if forgets or question is None or not _doubts(asked, question, one.text)]
    return {"kept": kept, "reasons": f"{len(kept)} of them help."}


def judge_passages(asked: Asked) -> Values:
    """Judge each passage as the filter does, and say which steps it answers."""
    kept = filter_knowledge(asked)["kept"]
    judged = []
    for one in asked.passages:
        useful = one.number in kept
        told = [step for step in asked.gather([one]) if step.answer] if useful else []
        says = " ".join(_write(step.query, step.answer) for step in told) or "something that the answer needs"
        judged.append({"number": one.number, "says": says if useful else "", "useful": useful})
    return {"judgements": judged}


def _doubts(asked: Asked, question: Question, passage: str) -> bool:
    """Tell whether the model remembers otherwise a step that the passage answers, and trusts itself more."""
    mind = asked.mind
    for step in question.resolved_steps():
        fact = mind.world.fact(step.question)
        if fact is None or not find_answer(fact, passage):
            continue
        memory = mind.believes(fact.query)
        if memory is None or any(contains(memory, answer) for answer in fact.answers):
            continue
        if mind.traits.chance("trusts", fact.key, normalise(fact.answers[0])) >= mind.traits.trusts:
            return True
    return False


def _write(query: str, answer: str | None) -> str:
    """Write a fact as a sentence; without an answer, what it is about."""
    return write_fact(query, answer) if answer else f"{query.rstrip('?')}."
