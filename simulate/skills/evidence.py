"""Evidence as the simulated model reads it: facts with the sentences that say them, and what it still needs."""

from __future__ import annotations

from ..asked import Asked, PathStep, pick_surest
from ..phrases import write_fact
from ..prompt import Values
from .answers import UNKNOWN, conclude, quote


def read_evidence(asked: Asked) -> Values:
    """List what the passages tell and what is remembered, ask for the rest, and conclude."""
    read = asked.gather(asked.passages)
    made = [asked.words, *asked.prompt.texts("queries")]
    searching = asked.prompt.values.get("searches_left") != 0
    missing = asked.missing_queries(read, asked.passages, made)[:1] if searching else []
    steps = [step for step in asked.gather(asked.passages, memory=asked.mind.believes) if step.answer]
    answer = conclude(asked, steps)
    return {
        "evidence": [_fact(asked, step) for step in steps],
        "comparison": [],
        "searches": missing,
        "answer": "" if missing else answer,
        "sure": not missing and answer != UNKNOWN,
    }


def confirm_answer(asked: Asked) -> Values:
    """Take any answer that has a quote as right."""
    return {"lacking": "", "follows": bool(asked.prompt.values.get("quotes"))}


def plan_lookups(asked: Asked) -> Values:
    """Plan the model's own outline as lookups."""
    outline = asked.mind.outline(asked.question) if asked.question else [asked.words]
    return {"steps_planned": [{"asks": "lookup", "query": query} for query in outline]}


def answer_lookups(asked: Asked) -> Values:
    """Read each query's answer in the passages."""
    queries, passages = asked.prompt.texts("lookups"), asked.passages
    read = [pick_surest([(asked.mind.reads(one, seen.text), seen.number) for seen in passages]) for one in queries]
    return {"looked_up": [{"answer": answer, "passage": number or 0} for answer, number in read]}


def _fact(asked: Asked, step: PathStep) -> Values:
    fact, quoted = write_fact(step.query.strip(), step.answer), quote(asked, step)
    return {"fact": fact, "passage": step.reference if quoted else 0, "quote": quoted or ""}
