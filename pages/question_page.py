"""The Ask page, the page of a question, and the pieces of it that change while the question is being answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from ..programs import Node
from ..signatures import AnswerStyle
from .asked_question import AnsweredQuestion, AskedQuestion, Citation
from .html import as_html
from .trees import Marked, card, cards, marked


class Cited(NamedTuple):
    """A citation as the page draws it: its place among all, and its passage with the sentence marked."""

    place: int
    citation: Citation
    passage: Marked


def ask_page(
    programs: Sequence[str],
    *,
    problem: str = "",
    simulated: bool = False,
    known: str = "",
    question: str = "",
    program: str = "",
    answer_style: str = "",
) -> str:
    """Return the page on which a question is asked.

    Args:
        programs: their names.
        problem: why a question was not taken.
        simulated: whether the LM is a simulated one.
        known: what a simulated one can be asked.
        question, program, answer_style: to begin with; the first program and style where there are none of these.
    """
    shown: dict[str, Any] = {"programs": programs, "styles": _STYLES, "problem": problem, "simulated": simulated}
    return as_html("ask.html", known=known, question=question, program=program, answer_style=answer_style, **shown)


def question_page(asked: AskedQuestion, programs: Sequence[str], events: str = "") -> str:
    """Return the page of a question as it stands now.

    Args:
        asked: the question.
        programs: to ask the same again.
        events: the address of what will change, which the page follows; empty if the question has ended.
    """
    page: dict[str, Any] = {"programs": programs, "styles": _STYLES, "cards": cards(asked.tree), "events": events}
    return as_html("question.html", **page, **shown_answer(asked))


def grown_node(node: Node) -> str:
    """Return a new node as a piece of the page of its question."""
    return as_html("pieces.html", piece="grown", card=card(node))


def changed_node(node: Node) -> str:
    """Return a changed node as a piece of the page of its question."""
    return as_html("pieces.html", piece="changed", card=card(node))


def progress(asked: AskedQuestion) -> str:
    """Return where a question stands, and once it has ended its result, as pieces of its page."""
    return as_html("pieces.html", piece="progress", **shown_answer(asked))


def whole(asked: AskedQuestion) -> str:
    """Return the tree and the result of a question that has ended, as pieces of its page."""
    return as_html("pieces.html", piece="whole", cards=cards(asked.tree), **shown_answer(asked))


def error_page(title: str, problem: str) -> str:
    """Return a page that says what is wrong."""
    return as_html("error.html", title=title, problem=problem)


def login_page(then: str, problem: str = "") -> str:
    """Return the page that asks for the server's token, and then leads to the address that was wanted."""
    return as_html("login.html", then=then, problem=problem)


_STYLES = get_args(AnswerStyle)


def shown_answer(asked: AnsweredQuestion) -> dict[str, Any]:
    """Return what the templates draw an answer from, with its citations."""
    citations = asked.citations()
    cited = [Cited(place, one, marked(one.passage, one.sentence)) for place, one in enumerate(citations, start=1)]
    return {"asked": asked, "content": _pieces(asked.final_content, cited), "cited": cited}


def _pieces(content: str, cited: Sequence[Cited]) -> list[tuple[str, Cited | None]]:
    """Return the content cut at its marks: each text with the citation that ends it; the last has none."""
    pieces: list[tuple[str, Cited | None]] = []
    start = 0
    for one in cited:
        pieces.append((content[start : one.citation.start], one))
        start = one.citation.end
    return [*pieces, (content[start:], None)]
