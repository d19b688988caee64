"""One answer as a file by itself."""

from __future__ import annotations

from typing import Any

from .asked_question import AnsweredQuestion
from .html import as_html
from .question_page import shown_answer


def answer_page(answered: Any, *, simulated: bool) -> str:
    """Return a prediction, or what a run kept of one, as a page."""
    asked = AnsweredQuestion.of_prediction(answered, simulated=simulated)
    return as_html("one_answer.html", root=None, **shown_answer(asked))
