"""A plan as data, as the simulated model writes it, and what it reads for the queries of one level."""

from __future__ import annotations

from ..asked import Asked, pick_surest
from ..prompt import Values


def plan_graph(asked: Asked) -> Values:
    """Plan the model's own outline as lookups."""
    outline = asked.mind.outline(asked.question) if asked.question else [asked.words]
    return {"steps_planned": [{"asks": "lookup", "query": query} for query in outline]}


def answer_lookups(asked: Asked) -> Values:
    """Read each query's answer in the passages."""
    looked_up = []
    for query in asked.prompt.texts("lookups"):
        readings = [(asked.mind.reads(query, passage.text), passage.number) for passage in asked.passages]
        answer, reference = pick_surest(readings)
        looked_up.append({"answer": answer, "passage": reference or 0})
    return {"looked_up": looked_up}
