"""Where a replay differs from the stored run: the exchange, why, and what changed in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import zip_longest
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ...lm.episode import EpisodeStep, Place
from ..records import Record

Why = Literal[
    "prompt changed",
    "sampling changed",
    "query changed",
    "parse changed",  # the same reply is parsed in another way: it is asked for again, or no longer
    "asked otherwise",  # the program goes on in another way
    "no longer asked",
    "reply changed",  # another LM, or the same on another day
    "answer changed",  # all requests and replies were as before
]

_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
_ROLE = re.compile(r"[ +-](system|user|assistant):")
_SHOWN = 300  # characters of a value


class Difference(BaseModel):
    """One difference of a replay: by default in the answer.

    Attributes:
        place: the exchange's place among all steps of the question; empty for the answer.
        by: the prompt, retriever or reader that was asked; for the answer, the field of the record.
        number: the exchange's number within the question, from 1; 0 for the answer.
    """

    model_config = ConfigDict(frozen=True)

    place: Place = ()
    by: str
    number: int = 0
    why: Why = "answer changed"
    text: str


def step_differences(then: Iterable[EpisodeStep], now: Iterable[EpisodeStep], *, live: bool) -> Iterator[Difference]:
    """Yield the differences between a question's steps, in the program's order, until it asks for something else.

    Args:
        live: whether another LM may have replied: then replies are compared as well, and of requests the prompts alone,
            as each model has options of its own.
    """
    stored, made = ({one.place: one for one in steps} for steps in (then, now))
    last: EpisodeStep | None = None
    for number, place in enumerate(sorted({*stored, *made}), start=1):
        was, is_ = stored.get(place), made.get(place)
        why: Why | None = None
        by = text = ""
        if is_ is None:
            was = stored[place]
            why, by, text = "no longer asked", was.name, f"{was.kind} {was.name}"
        elif was is None or (was.kind, was.name) != (is_.kind, is_.name):
            why, by, text = _departure(is_, was, last)
        elif _shown(was) != _shown(is_) if live else was.digest != is_.digest:
            (why, text), by = _changed(was, is_), was.name
        elif live and _said(was) != _said(is_):
            why, by, text = "reply changed", was.name, f"{_said(was)}\n→\n{_said(is_)}"
        if why:
            yield Difference(place=place, by=by, number=number, why=why, text=text)
        if why in ("parse changed", "asked otherwise"):
            return
        last = was


def _shown(step: EpisodeStep) -> object:
    return step.request.get("messages") if step.kind == "request" else step.request


def _said(step: EpisodeStep) -> str:
    """Return the outcome in words: the texts of replies, the ids of passages, or why there is none."""
    if step.fault is not None:
        return f"{step.fault.error}: {step.fault.message}"
    came = step.outcome if isinstance(step.outcome, list) else [step.outcome]
    named = {"request": "text", "search": "id"}.get(step.kind, "")
    return "\n".join(str(one.get(named) if isinstance(one, Mapping) and named else one) for one in came)


def _changed(stored: EpisodeStep, begun: EpisodeStep) -> tuple[Why, str]:
    """Return what changed in a request, a search or a reading, and how."""
    if stored.kind == "request" and _shown(stored) == _shown(begun):
        return "sampling changed", f"{stored.request.get('options')} → {begun.request.get('options')}"
    text = "\n".join(_lines_that_differ(_as_text(stored.request), _as_text(begun.request)))
    return "prompt changed" if stored.kind == "request" else "query changed", text


def _departure(begun: EpisodeStep, stored: EpisodeStep | None, before: EpisodeStep | None) -> tuple[Why, str, str]:
    """Return why the program asks for something else than before, who is asked, and the change in words."""
    last = before.name if before else None
    reread = before is not None and before.kind == "request" and last in (begun.name, stored.name if stored else None)
    then = f"{stored.kind} {stored.name}" if stored else "nothing"
    after = f"after the same reply to {last}, " if before else ""
    text = f"{after}{begun.kind} {begun.name} is asked, and {then} was"
    return ("parse changed", str(last), text) if reread else ("asked otherwise", begun.name, text)


def comparable(record: Record) -> dict[str, Any]:
    """Return a record as JSON, without scores and without what no replay repeats: times, and lines of the code."""
    content = record.model_dump(mode="json", exclude={"scores", "inputs", "gold", "seconds", "trace"})
    where = (content.get("failure") or {}).get("where")
    if where and not where["predictor"]:
        where["step"] = ""  # functions and a line
    return content


def answer_differences(stored: Record, now: Record) -> tuple[Difference, ...]:
    """Return the fields of a record that differ under the present code; of a tree, the first node that differs."""
    was, is_ = comparable(stored), comparable(now)
    return tuple(_difference(name, was[name], is_[name]) for name in was if was[name] != is_[name])


def _difference(name: str, was: Any, is_: Any) -> Difference:
    if name == "tree" and was and is_:
        pairs = enumerate(zip_longest(was["nodes"], is_["nodes"]))
        node, (was, is_) = next((pair for pair in pairs if pair[1][0] != pair[1][1]), ("other fields", (was, is_)))
        name = f"tree, node {node}"
    if isinstance(was, dict) and isinstance(is_, dict):
        differing = [key for key in {**was, **is_} if was.get(key) != is_.get(key)]
        was, is_ = ({key: one.get(key) for key in differing} for one in (was, is_))
    return Difference(by=name, text=f"{str(was)[:_SHOWN]} → {str(is_)[:_SHOWN]}")


def _as_text(asked: Any) -> str:
    """Return what was asked as lines: of a prompt, its messages."""
    messages = asked.get("messages")
    if isinstance(messages, list):
        return "\n".join(f"{role}:\n{content}" for role, content in messages)
    return "\n".join(f"{name}: {value}" for name, value in asked.items())


def _lines_that_differ(was: str, is_: str) -> Sequence[str]:
    """Return the lines that differ, each under the part of the prompt that it stands in."""
    shown: list[str] = []
    part = told = ""
    for line in list(unified_diff(was.splitlines(), is_.splitlines(), n=10_000, lineterm=""))[3:]:
        if begins := _ROLE.fullmatch(line) or (part != "system" and _FIELD.search(line)):  # that lists all fields
            part = begins[1]
        if line[:1] in "+-":
            shown += [line] if part == told else [f"in {part}:", line]
            told = part
    return shown
