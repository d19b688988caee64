"""Demonstrations from an LM's own steps: they follow the rules of annotated ones, and their passages are cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_origin

import dspy
from pydantic import BaseModel

from ...common.sentences import sentences
from ...common.text import changed_texts
from ...data.task import resolved_steps
from ...metrics import contains, exact_match, normalise, stands_in
from ...metrics.quotes import quoted_sentences
from ...programs.demonstrations import TraceStep, with_fields
from ...programs.references import renumbered
from .lessons import DISTRACTORS, states

_ROW = re.compile(r"\[(\d+)\] (?:(.*?) \| )?(.*)", re.DOTALL)
_MARK = re.compile(r"\[(\d+)\]")
_PROSE = ("final_content", "facts", "analysis", "passage", "information", "guess", "recalled")
_CITING = ("final_content", "facts", "analysis")
_NOTE = re.compile(r"(?:^|[.!?\]] )(?!So the answer)[^.:!?]+: [^.:!?]{1,60}\.(?:\s|$)")  # "British general: Sunday."
_NUMBERS = {"passage_number", "number", "passage", "kept", "references"}
_MARKED_INPUTS = ("assertions", "known_facts")
_WHOLE = {"last_adds", "relevant", "assertions"}  # fields of prompts that are about every passage


def is_right(answer: str, golds: list[str]) -> bool:
    """Return whether an answer is a gold one, or contains one and is in one; a date is wrong for a year."""
    held = any(contains(answer, gold) for gold in golds) and any(contains(gold, answer) for gold in golds)
    return bool(exact_match(answer, golds)) or held


def is_sound(step: TraceStep, example: Any) -> bool:
    """Return whether a step says what its passages state, about the query's subject, in sentences with their marks.

    Where the step says that a query found nothing, no passage holds that query's annotated answer.
    """
    _, inputs, reply = step
    prose = [str(reply.get(name) or "") for name in _PROSE]
    prose += [dict(one)["says"] for one in reply.get("judgements") or []]
    rows = _rows(inputs)
    if any(map(_NOTE.search, prose)) or _unmarked(inputs, reply, rows):
        return False
    found, number = reply.get("found", reply.get("span")), reply.get("passage_number", 1)
    if found and number in rows and "query" in inputs:
        title, text = rows[number]
        first = found.partition(";")[0]  # the first of several answers
        return any(states(inputs["query"], first, title, sentence) for sentence in sentences(text))
    missed = inputs.get("failed_query") or (inputs.get("query") if found == "" else None)
    known = [one.answer for one in resolved_steps(example) if normalise(one.question) == normalise(missed or "")]
    return not any(stands_in(f"{title}. {text}", one) for one in known if one for title, text in rows.values())


def _unmarked(inputs: Mapping[str, Any], reply: Mapping[str, Any], rows: Mapping[int, tuple[str, str]]) -> bool:
    """Return whether a text that cites repeats a sentence of a passage, or a step's support, without a mark."""
    shown = [text for _, text in rows.values()] + [dict(one)["support"] or "" for one in inputs.get("steps") or []]
    said = {sentence for text in shown for sentence in sentences(text)}
    return any(sentence in said for name in _CITING for sentence in sentences(str(reply.get(name) or "")))


def each_verdict_once(predictor: dspy.Predict) -> list[Any]:
    """Return a predictor's demonstrations; if it judges, only the first of each verdict.

    A second one shows no new case, and costs tokens in every call.
    """
    given, told = predictor.signature.fields, predictor.signature.output_fields
    judging = [name for name in told if told[name].annotation is bool or get_origin(told[name].annotation) is Literal]
    texts = [name for name, field in given.items() if field.annotation in (str, str | None)]
    kinds = [[*(str(demo[n]) for n in judging), *(bool(demo[n]) for n in texts)] for demo in predictor.demos]
    return [demo for at, demo in enumerate(predictor.demos) if not judging or kinds[at] not in kinds[:at]]


def shortened(step: TraceStep) -> TraceStep:
    """Return a step whose passages are cut to the sentences that matter, with at most two that the reply leaves aside.

    The remaining passages are numbered anew, also where the reply names them.
    """
    predictor, inputs, reply = step
    rows = _rows(inputs)
    if not rows:
        return step
    marked = {name: inputs[name] for name in _MARKED_INPUTS if name in inputs}
    useful = [one for one in reply.get("judgements") or [] if dict(one)["useful"]]
    told, used = _texts([*reply.values()]), set[int]()
    used.update(int(number) for text in told + _texts([*marked.values()]) for number in _MARK.findall(text))

    def use(number: int) -> int:
        used.add(number)
        return number

    _numbered({**dict(reply), "judgements": useful, **marked}, use)
    answer = str(reply.get("answer") or "")
    used = used or {number for number, (title, text) in rows.items() if stands_in(f"{title}. {text}", answer)}
    all_meant = not _WHOLE.isdisjoint({*inputs, *reply.keys()})
    others = [number for number in rows if number not in used]
    left = [number for number in rows if all_meant or number in used or number in others[:DISTRACTORS]]
    numbers = {old: new for new, old in enumerate(left, start=1)}
    quotes = [(one.passage, one.quote) for one in reply.get("evidence") or []]
    words = " ".join(told)
    shown = [
        _row(numbers[n], *rows[n], words if all_meant or n in used else None, [q for of, q in quotes if of == n and q])
        for n in left
    ]

    def anew(value: Any) -> Any:
        texts = changed_texts(value, lambda text: renumbered(text, numbers))
        return _numbered(texts, lambda number: numbers.get(number, 0))

    fields = dict(reply)
    if "judgements" in fields:
        fields["judgements"] = [one for one in fields["judgements"] if dict(one)["number"] in numbers]
    return predictor, {**inputs, **anew(marked), "passages": shown}, with_fields(reply, anew(fields))


def _rows(inputs: Mapping[str, Any]) -> dict[int, tuple[str, str]]:
    """Return title and text of the numbered passages that a prompt shows."""
    found = (_ROW.fullmatch(str(row)) for row in inputs.get("passages") or [])
    return {int(row[1]): (row[2] or "", row[3]) for row in found if row}


def _row(number: int, title: str, text: str, told: str | None, quotes: Sequence[str]) -> str:
    """Return a passage as it is shown: its sentences that are quoted or matter, or the first if nothing is told."""
    held = [found for quote in quotes if (found := quoted_sentences(quote, text))]
    cut = list(dict.fromkeys(held)) or (sentences(text)[:1] if told is None else _closest_sentences(text, told))
    return f"[{number}] {f'{title} | ' if title else ''}{' '.join(cut)}"


def _closest_sentences(text: str, told: str) -> list[str]:
    """Return at most two sentences, those that share most words with what is told."""
    words = {word for word in normalise(told).split() if len(word) > 3 or word.isdigit()}
    shared = [(len(words & {*normalise(sentence).split()}), sentence) for sentence in sentences(text)]
    most = max((count for count, _ in shared), default=0)
    return [sentence for count, sentence in shared if count == most][:2]


def _texts(value: Any) -> list[str]:
    """Return all texts in a value."""
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    changed_texts(value, keep)
    return texts


def _numbered(value: Any, number: Callable[[int], int], name: str = "") -> Any:
    """Return the value with new numbers for the passages that its fields name."""
    if isinstance(value, int) and not isinstance(value, bool) and name in _NUMBERS:
        return number(value)
    if isinstance(value, list):
        return [_numbered(one, number, name) for one in value]
    if isinstance(value, BaseModel):
        return value.model_copy(update={key: _numbered(one, number, key) for key, one in value})
    return {key: _numbered(one, number, key) for key, one in value.items()} if isinstance(value, dict) else value
