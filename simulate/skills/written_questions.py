"""Questions as the simulated model writes and checks them: it knows one for a chain if its world has it."""

from __future__ import annotations

from ...metrics import normalise, telling_sentence
from ...signatures.written_questions import ASKED
from ..asked import Asked
from ..prompt import Values, split_title


def write_question(asked: Asked) -> Values:
    """Write the world's question that needs most of these passages; else, or where asked for, one without an answer."""
    shown = [split_title(one.text) for one in asked.passages]
    if asked.prompt.values.get("asks_for") == ASKED["absent"]:
        return _unanswerable(shown)
    titles, steps = [normalise(title) for title, _ in shown], list[Values]()
    short = [one for one in asked.mind.world.questions if one.style == "short" and one.gold_titles]
    known = [one for one in short if {*map(normalise, one.gold_titles)} <= {*titles}]
    question = max(known, key=lambda one: len(one.gold_titles), default=None)
    for step in question.steps if question else ():
        number = titles.index(normalise(step.support_title or ""))
        quote = telling_sentence(step.question, step.answer or "", *shown[number])
        steps.append({"question": step.question, "answer": step.answer, "passage": number + 1, "quote": quote or ""})
    words, answers = (question.question, list(question.answers[:1])) if question else ("", [])
    return {"steps": steps, "written_question": words, "answers": answers}


def hear_question(asked: Asked) -> Values:
    """Find nothing odd in the question, and answer it if the mind believes to know the answer."""
    return {"asker": "", "odd": "", "well_asked": True, "remembered": asked.mind.believes(asked.words)}


def _unanswerable(shown: list[tuple[str, str]]) -> Values:
    """Write a question that leads from the first passage to something that no passage tells."""
    (first, text), last = shown[0], len(shown)
    led = {"question": f"What goes with {first}?", "passage": 1, "answer": shown[-1][0], "quote": text}
    steps = [led, {"question": "Which stamp shows #1?", "passage": last}][last == 1 :]
    return {"steps": steps, "written_question": f"Which stamp shows what goes with {first}?", "answers": []}
