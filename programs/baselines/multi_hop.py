"""Multi-hop search with notes, the program of DSPy's own tutorial."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dspy
from pydantic import Field

from ...common.text import query_or_none, stated
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import marked_fragments
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.notes import AnswerFromNotes, TakeNotes, WriteHopQuery
from ..demonstrations import Judgement, note
from ..modules.answers import cited_answer
from ..program import Program, ProgramSettings, answered
from ..references import distinct, numbered_among, numbers_of, without_loose_marks
from ..tree import ReasoningTree


class MultiHopSettings(ProgramSettings):
    """How it searches; the defaults are the tutorial's.

    Attributes:
        hops: the most searches, one after another.
        k: passages that a search retrieves.
    """

    hops: int = Field(default=4, ge=1)
    k: int = Field(default=10, ge=1)


class MultiHop(Program):
    """Multi-hop search with notes (DSPy's tutorial on it).

    Each hop writes a query from the notes, retrieves, and notes what helps; the answer comes from the notes alone. The
    tutorial, which MIPROv2 compiles, returns notes and titles for HoVer, and makes all its hops; here an answer is read
    from the notes, which carry the marks of their passages, and a query that is empty or was made before ends the
    search.
    """

    name = "multi-hop"
    Settings = MultiHopSettings
    settings: MultiHopSettings

    def __init__(self, retriever: Retriever | None = None, settings: MultiHopSettings | None = None):
        super().__init__(retriever, settings)
        self.hop_query = dspy.Predict(WriteHopQuery)
        self.new_notes = dspy.Predict(TakeNotes)
        self.notes_answer = dspy.Predict(AnswerFromNotes)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search and take notes until nothing is missing, then answer; ``passages`` are those noted."""
        question, notes, passages, last = tree.question, list[str](), list[Passage](), None
        queries, kind = dict[str, int](), "begins"  # how many notes each query led to
        for _ in range(self.settings.hops):
            made = [f"{query} → {count or 'no'} note{'s' * (count != 1)}" for query, count in queries.items()]
            query = next_query(self.hop_query, queries, kind, question=question, notes=notes, queries=made)
            if not query:
                break
            found = self.retrieve(query, self.settings.k)
            last = tree.add_search(last, query, found)
            new = taken_down(self.new_notes, passages, found, question=question, notes=notes, query=query)
            queries[query], kind = len(new), "goes on" if new else "asks again"
            notes = [*notes, *new]
            passages = distinct([passages, found])
        inputs = {"question": question, "answer_style": answer_style, "notes": notes, "queries": list(queries)}
        cited = cited_answer(self.notes_answer, passages, **inputs)
        noted = [passages[number - 1] for number in sorted(marks_in(notes))]
        return answered(tree, *cited, passages=noted, notes=tuple(notes))


def next_query(predict: dspy.Predict, made: Iterable[str], kind: str = "goes on", **inputs: Any) -> str:
    """Return the query of the next hop; empty if no fact is missing or the LM repeats itself.

    A reply that repeats an earlier query is no demonstration. ``kind`` is noted on a reply that has a query.
    """
    reply = call(predict, **inputs)
    query = query_or_none(reply.query) or ""
    repeats = query.casefold() in map(str.casefold, made)
    note(reply, kind if query else "ends", exemplary=not repeats)
    return "" if repeats else query


def taken_down(predict: dspy.Predict, before: list[Passage], found: list[Passage], **inputs: Any) -> list[str]:
    """Return the notes or the summary that a call writes about the found passages.

    Marks also number the passages found before. A new passage counts as useful if a mark names it; an earlier one is
    not judged, since its facts may be noted already.
    """
    if not found:
        return []
    known, old = distinct([before, found]), {passage.id for passage in before}
    reply = call(predict, passages=numbered_among(known, found), **inputs)
    written = [reply.summary] if "summary" in reply else reply.new_notes
    texts = stated(without_loose_marks(text, len(known)) for text in written)
    numbers, marks, new = numbers_of(known), marks_in(texts), [p for p in shown_of(found, reply) if p.id not in old]
    note(reply, "some" if texts else "none", [Judgement([passage], numbers[passage.id] in marks) for passage in new])
    return texts


def marks_in(texts: list[str]) -> set[int]:
    """Return the numbers of the passages that the texts refer to."""
    return {number for text in texts for _, numbers in marked_fragments(text) for number in numbers}
