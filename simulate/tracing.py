"""The final content as the simulated model writes it, and the answer that its reasoning path bears out."""

from __future__ import annotations

import re
from typing import Any

from ..data import Question
from ..metrics import contains, normalise
from .mind import Mind
from .prompt import Prompt, Values
from .stating import statement

_MARK = re.compile(r"\[\d+\]")
_EITHER_OR = re.compile(r"([^,:]+?),? or (?:the )?([^,?]+)\??$")
_LABELS = ["SUPPORTS", "REFUTES"]
UNKNOWN = "unknown"


def trace_answer(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The path told step by step, with the marks that the model does not forget, and the answer."""
    steps = [step for step in prompt.values.get("steps") or [] if isinstance(step, dict)]
    words, style = str(prompt.values.get("question", "")), str(prompt.values.get("answer_style", "short"))
    return {
        "final_content": told(mind, prompt, salt, steps) or f"Nothing is known about “{words}”.",
        "answer": conclude(mind, words, style, steps),
    }


def told(mind: Mind, prompt: Prompt, salt: str, steps: list[dict[str, Any]]) -> str:
    """Steps as sentences; each ends in the mark of its reference, if it has one and the model does not forget it."""
    return " ".join(_sentence(mind, prompt, salt, step) for step in steps)


def conclude(mind: Mind, words: str, style: str, steps: list[dict[str, Any]]) -> str:
    """The answer to the question that these steps bear out.

    Where the last step's answer is the question's, the path's own last answer, right or wrong; if that step is
    unsolved, what the model remembers of the whole question, or else the last answer before. Where the answer has to
    be worked out (comparisons, yes or no, labels, long answers), the right one if every annotated step's answer
    stands on the path, and else a wrong one.
    """
    path = [str(step["answer"]) if step.get("answer") else None for step in steps]
    answers = [answer for answer in path if answer]
    question = mind.world.question(words)
    if question is None:
        return answers[-1] if answers and style == "short" else _guess(mind, words, style, answers)
    own = mind.concludes(question, path)
    if own is not None:
        return own
    if not _worked_out(question):
        return path[-1] if path and path[-1] else mind.believes(words) or (answers or [UNKNOWN])[-1]
    if any(_matches(answer, question.answers) for answer in answers[-1:]) or _borne_out(question, answers):
        return question.answers[0]
    return _wrong(mind, question, answers)


def _sentence(mind: Mind, prompt: Prompt, salt: str, step: dict[str, Any]) -> str:
    query, answer, reference = str(step.get("query", "")).strip(), step.get("answer"), step.get("reference")
    marked = bool(answer and reference) and cites(mind, prompt, salt, query)
    return statement(query, str(answer) if answer else None, reference if marked else None)


def cites(mind: Mind, prompt: Prompt, salt: str, query: str) -> bool:
    """Whether the model marks the fragment about a query; demonstrations that hold marks help."""
    shown = sum(bool(_MARK.search(str(demo.get("final_content", "")))) for demo in prompt.demos)
    skill = mind.traits.learnt(mind.traits.cites, mind.traits.cites_shown, shown)
    return mind.traits.chance("cites", normalise(query), salt) < skill


def _worked_out(question: Question) -> bool:
    """Whether no step's answer is the question's answer."""
    if question.style != "short" or not question.steps:
        return question.style != "short"
    return not _matches(question.steps[-1].answer or "", question.answers)


def _borne_out(question: Question, answers: list[str]) -> bool:
    needed = [step.answer for step in question.steps if step.answer]
    return bool(needed) and all(any(contains(given, one) for given in answers) for one in needed)


def _guess(mind: Mind, words: str, style: str, answers: list[str]) -> str:
    """An answer in the style that is asked for, without anything to go by but memory."""
    if style == "short":
        return mind.believes(words) or UNKNOWN
    if style == "label":
        return "NOT ENOUGH INFO"
    if style == "yes-no":
        return mind.traits.choice(["yes", "no"], "guess", normalise(words))
    return " ".join(answers) or UNKNOWN


def _wrong(mind: Mind, question: Question, answers: list[str]) -> str:
    """A wrong answer of the right form."""
    true = question.answers[0]
    if question.style == "yes-no":
        return "no" if true.lower() == "yes" else "yes"
    if question.style == "label":
        unsure = len(answers) < len(question.steps) and true != "NOT ENOUGH INFO"
        return "NOT ENOUGH INFO" if unsure else next(label for label in _LABELS if label != true)
    if question.style == "long":
        return " ".join(answers) or UNKNOWN
    options = [*_options(question.question), *(step.support_title or "" for step in question.steps)]
    wrong = [option for option in options if option and not any(contains(a, option) for a in question.answers)]
    return wrong[0] if wrong else next(iter(mind.world.alike("other", question.answers)), UNKNOWN)


def _options(words: str) -> list[str]:
    """What a question "which …, A or B?" lets choose from."""
    found = _EITHER_OR.search(words)
    return [found[1].strip(), found[2].strip()] if found else []


def _matches(answer: str, answers: tuple[str, ...]) -> bool:
    return normalise(answer) in {normalise(one) for one in answers}
