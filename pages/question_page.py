"""The Ask page, and the page of a question, a part of which changes while the question is being answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import dspy

from ..evaluation.html import as_html
from ..evaluation.records import Record
from ..signatures import AnswerStyle
from .asked_question import AskedQuestion, Citation, Reference, ShownAnswer

if TYPE_CHECKING:
    from ..retrieval.documents.indexed import IndexedDocuments

STYLES: dict[str, str] = {
    "short": "in a few words",
    "yes-no": "yes or no",
    "label": "a claim: supported or not",
    "two-label": "a claim: true or false",
    "long": "in a paragraph",
    "list": "all that fit",
}
"""What the answer styles are called on a page."""
assert set(STYLES) == set(get_args(AnswerStyle))


class Offered(NamedTuple):
    """What can be asked at a server.

    Attributes:
        programs: what each does, by name.
        about: what is searched and which LM is asked, in a sentence.
        examples: questions that can be answered.
        simulated: whether the LM is a simulated one.
        known: what a simulated one can be asked.
    """

    programs: dict[str, str]
    about: str = ""
    examples: Sequence[str] = ()
    simulated: bool = False
    known: str = ""


def ask_page(offered: Offered, recent: Sequence[AskedQuestion] = (), problem: str = "", **form: str) -> str:
    """Return the page on which a question is asked.

    Args:
        offered: what can be asked.
        recent: questions that were asked lately.
        problem: why a question was not taken.
        form: its question, program and answer style to begin with.
    """
    return as_html("ask.html", offered=offered, recent=recent, problem=problem, styles=STYLES, form=form)


def question_page(
    asked: AskedQuestion,
    programs: Sequence[str],
    events: str = "",
    documents: IndexedDocuments | None = None,
    thread: Sequence[AskedQuestion] = (),
) -> str:
    """Return the page of a question as it stands now.

    Args:
        asked: the question.
        programs: to ask the same again.
        events: the address of what will change, which the page follows; empty if the question has ended.
        documents: that passages come from.
        thread: the questions that it goes on from, the first one first.
    """
    about = shown_answer(asked, documents)
    return as_html("question.html", programs=programs, events=events, thread=thread, **about)


def progress(asked: AskedQuestion, documents: IndexedDocuments | None = None) -> str:
    """Return the part of the page of a question that changes, as it stands now."""
    return as_html("live.html", **shown_answer(asked, documents))


def shown_answer(asked: ShownAnswer, documents: IndexedDocuments | None = None) -> dict[str, Any]:
    """Return what the templates draw an answer from: its text cut at its marks, and its sources."""
    pieces: list[tuple[str, Citation | None]] = []
    start = 0
    for one in asked.citations():
        pieces.append((asked.final_content[start : one.start].rstrip(), one))
        start = one.end
    pieces.append((asked.final_content[start:], None))
    sources = [_in_document(one, asked, documents) if documents else one for one in asked.sources()]
    return {"asked": asked, "content": pieces, "sources": sources, "styles": STYLES}


def _in_document(one: Reference, asked: ShownAnswer, documents: IndexedDocuments) -> Reference:
    """Return a reference with what stands beside it, and where a server gives its document."""
    if (beside := documents.beside(one.passage)) is None:
        return one
    _, sign, fragment = one.passage.source.partition("#")
    opens = f"/questions/{asked.id}/sources/{one.number}{sign}{fragment}" if isinstance(asked, AskedQuestion) else ""
    return one._replace(before=beside[0], after=beside[1], opens=opens)


def answer_page(said: dspy.Prediction | Record, *, simulated: bool, documents: IndexedDocuments | None = None) -> str:
    """Return a prediction, or what a run kept of one, as a page that is one file by itself."""
    asked = ShownAnswer.of_prediction(said, simulated=simulated)
    return as_html("one_answer.html", root=None, **shown_answer(asked, documents))
