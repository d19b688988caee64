"""Answers as the simulated model gives them: outright, after some thought, from texts, and from a reasoning path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...data import Question
from ...metrics import contains, normalise, telling_sentence
from ..asked import Asked, PathStep
from ..phrases import write_fact
from ..prompt import Values, split_title
from ..world import is_among

_MARK = re.compile(r"\[\d+\]")
_EITHER_OR = re.compile(r"([^,:]+?),? or (?:the )?([^,?]+)\??$")
_EITHER = {"yes-no": ["yes", "no"], "two-label": ["SUPPORTS", "REFUTES"]}
"""The answers that a style of two answers has."""
UNKNOWN = "unknown"


def answer_question(asked: Asked) -> Values:
    """Answer outright: right if the model knows every fact that the answer is put together from."""
    asked = asked.sample()
    believed = asked.mind.believes(asked.words)
    if asked.style == "short" and believed:
        return {"answer": believed}
    return {"answer": conclude(asked, [PathStep(asked.words, believed)] if believed else [])}


def answer_step_by_step(asked: Asked) -> Values:
    """Write fact after fact from memory, sure or not: so more of them come back than in an answer outright."""
    asked = asked.sample()
    return _answer(asked, asked.gather([], memory=asked.mind.recalls))


def answer_from_passages(asked: Asked) -> Values:
    """Answer without a word of reasoning: useful passages are overlooked, and memory takes their place.

    A passage without a title is one that the model wrote, and what it states there is taken as it stands.
    """
    asked = asked.sample()
    written = [passage.text for passage in asked.passages if not split_title(passage.text)[0]]
    return {"answer": conclude(asked, asked.gather(asked.judge.reads(asked.passages), asked.remember(written)))}


def answer_with_knowledge(asked: Asked) -> Values:
    """Write step by step what the passages tell, and what the model remembers where they are silent; conclude."""
    asked = asked.sample()
    return _answer(asked, asked.gather(asked.passages, memory=asked.mind.believes))


def trace_answer(asked: Asked) -> Values:
    """Tell the path step by step, with the marks that the model does not forget; and conclude, of a list all items."""
    steps, needed = asked.steps("steps"), asked.question.answers if asked.question else ()
    items = dict.fromkeys(step.answer for step in steps if step.answer and is_among(step.answer, needed))
    told = _answer(asked, steps)
    return told | {"answer": "; ".join(items)} if items and asked.style == "list" else told


def fuse_assertions(asked: Asked) -> Values:
    """Answer with what the passages together bear out, if they tell every step; else with what most assertions say.

    Of answers that are asserted equally often, the model gives the one that it remembers, or else draws. Where
    nothing is asserted, it answers as with any knowledge.
    """
    rows = asked.prompt.values.get("assertions") or []
    assertions = [row for row in rows if isinstance(row, dict) and row.get("answer")]
    if not assertions:
        return answer_with_knowledge(asked)
    steps = asked.gather(asked.passages)
    if all(step.answer for step in steps):
        return _answer(asked, steps)
    answer = _weigh(asked, [str(row["answer"]) for row in assertions])
    return {"final_content": _tell_assertions(asked, answer, assertions), "answer": answer}


def write_steps(asked: Asked, steps: Iterable[PathStep], *, marks: bool = True) -> str:
    """Write steps as sentences, each once: those of their passages, with the marks that the model does not forget."""
    told = []
    for step in steps:
        reference = step.reference if marks and step.answer and cites(asked, step.query.strip()) else None
        quoted = quote(asked, step)
        mark = f" [{reference}]" if reference else ""
        fact = f"{quoted.rstrip('.')}{mark}." if quoted else write_fact(step.query.strip(), step.answer, reference)
        told.append(fact)
    return " ".join(dict.fromkeys(told))


def quote(asked: Asked, step: PathStep) -> str | None:
    """Return the sentence that tells a step's answer in its passage, or that the prompt shows as its support."""
    told = {one.number: split_title(one.text) for one in asked.passages}
    rows = asked.prompt.values.get("steps")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("support"):
            told[row["mark"]] = (row.get("title") or "", row["support"])
    title, text = told.get(step.reference or 0, ("", ""))
    return telling_sentence(step.query, step.answer, title, text) if step.answer and text else None


def cites(asked: Asked, query: str) -> bool:
    """Tell whether the model marks the fragment about a query; demonstrations that hold marks help."""
    shown = sum(bool(_MARK.search(str(demo.get("final_content", "")))) for demo in asked.prompt.demos)
    traits = asked.mind.traits
    return traits.chance("cites", normalise(query), asked.salt) < traits.learnt(traits.cites, traits.cites_shown, shown)


def conclude(asked: Asked, steps: Iterable[PathStep]) -> str:
    """Return the answer to the question that these steps bear out.

    - Where the last step's answer is the question's, it is the path's own last answer, right or wrong. If that step is
      unsolved, it is what the model remembers of the whole question, or else the last answer before.
    - Where the answer has to be worked out (comparisons, yes or no, labels, long answers), it is the right one if every
      annotated step's answer stands on the path, and else a wrong one.
    - A list has those of its items that the path has.
    """
    path = [step.answer for step in steps]
    answers = [answer for answer in path if answer]
    question = asked.question
    if question is None:
        return answers[-1] if answers and asked.style == "short" else _guess(asked, answers)
    own = asked.mind.concludes(question, path)
    if own is not None:
        return own
    if question.style == "list":
        return "; ".join(dict.fromkeys(one for one in answers if is_among(one, question.answers))) or UNKNOWN
    if not _is_worked_out(question):
        return path[-1] if path and path[-1] else asked.mind.believes(asked.words) or (answers or [UNKNOWN])[-1]
    needed = [step.answer for step in question.steps if step.answer]
    borne_out = bool(needed) and all(any(contains(given, one) for given in answers) for one in needed)
    if borne_out or any(is_among(answer, question.answers) for answer in answers[-1:]):
        return question.answers[0]
    return _err(asked, question, answers)


def _answer(asked: Asked, steps: list[PathStep]) -> Values:
    """Return the steps as final content, and the answer that they bear out."""
    content = write_steps(asked, steps) or f"Nothing is known about “{asked.words}”."
    return {"final_content": content, "answer": conclude(asked, steps)}


def _is_worked_out(question: Question) -> bool:
    """Tell whether no step's answer is the question's answer."""
    if question.style != "short" or not question.steps:
        return question.style != "short"
    return not is_among(question.steps[-1].answer or "", question.answers)


def _guess(asked: Asked, answers: list[str]) -> str:
    """Return an answer in the style that is asked for, with nothing to go by but memory."""
    if asked.style == "short":
        return asked.mind.believes(asked.words) or UNKNOWN
    if asked.style == "label":
        return "NOT ENOUGH INFO"
    if asked.style in _EITHER:
        return asked.mind.traits.choice(_EITHER[asked.style], "guess", normalise(asked.words))
    return " ".join(answers) or UNKNOWN


def _err(asked: Asked, question: Question, answers: list[str]) -> str:
    """Return a wrong answer of the right form."""
    true = question.answers[0]
    if question.style in _EITHER:
        return next(word for word in _EITHER[question.style] if word.lower() != true.lower())
    if question.style == "label":
        unsure = len(answers) < len(question.steps) and true != "NOT ENOUGH INFO"
        return "NOT ENOUGH INFO" if unsure else next(label for label in _EITHER["two-label"] if label != true)
    if question.style == "long":
        return " ".join(answers) or UNKNOWN
    either_or = _EITHER_OR.search(question.question)  # "which …, A or B?"
    named = [either_or[1].strip(), either_or[2].strip()] if either_or else []
    options = [*named, *(step.support_title or "" for step in question.steps)]
    wrong = [option for option in options if option and not any(contains(a, option) for a in question.answers)]
    return wrong[0] if wrong else next(iter(asked.mind.world.alike("other", question.answers)), UNKNOWN)


def _weigh(asked: Asked, answers: list[str]) -> str:
    """Return the answer that is asserted most often."""
    votes = Counter(normalise(answer) for answer in answers)
    most = [answer for answer in answers if votes[normalise(answer)] == max(votes.values())]
    distinct = list({normalise(answer): answer for answer in reversed(most)}.values())
    memory = normalise(asked.mind.believes(asked.words) or "")
    remembered = [answer for answer in distinct if normalise(answer) == memory]
    drawn = asked.mind.traits.choice(sorted(distinct), "weighed", normalise(asked.words))
    return remembered[0] if remembered else drawn


def _tell_assertions(asked: Asked, answer: str, assertions: list[dict[str, Any]]) -> str:
    """Write one sentence for each different assertion, the chosen one first, with the marks that are not forgotten."""
    sentences: dict[str, str] = {}
    for row in sorted(assertions, key=lambda row: normalise(str(row["answer"])) != normalise(answer)):
        given = str(row["answer"])
        references = row.get("references") if cites(asked, f"{asked.words} {given}") else []
        marks = "".join(f" [{number}]" for number in references or [])
        chosen = normalise(given) == normalise(answer)
        told = write_fact(asked.words, given) if chosen else f"Another way leads to {given}."
        sentences.setdefault(normalise(given), f"{told.rstrip('.')}{marks}.")
    return " ".join(sentences.values())
