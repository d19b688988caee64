"""Prompts as a page: demonstrations folded, or what compilation changed in them, summed up on top."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..evaluation.html import as_html
from ..programs.prompts import RenderedPrompt


class Part(NamedTuple):
    """Lines in a row that both prompts have (same), or one of them alone (del, ins)."""

    kind: str
    lines: Sequence[str]


class ShownPrompt(NamedTuple):
    """A predictor's prompt as the page draws it.

    Attributes:
        predictor: its name.
        now: as it is sent; None if the program has no such predictor.
        before: in the program that it is compared with; None if there is none.
        parts: what it says beside its demonstrations, cut where the two differ.
        added, removed: demonstrations, each as what was asked and what was replied: all, where nothing is compared.
    """

    predictor: str
    now: RenderedPrompt | None
    before: RenderedPrompt | None
    parts: Sequence[Part]
    added: Sequence[tuple[str, str]]
    removed: Sequence[tuple[str, str]] = ()

    @property
    def rewritten(self) -> int:
        """Return how many lines of the instructions differ."""
        return sum(len(part.lines) for part in self.parts if part.kind != "same")

    @property
    def changed(self) -> bool:
        """Return whether anything differs."""
        return bool(self.rewritten or self.added or self.removed)


def prompts_page(
    title: str,
    prompts: Sequence[RenderedPrompt],
    before: Sequence[RenderedPrompt] | None = None,
    *,
    programs: Sequence[str] | None = None,
) -> str:
    """Return the page of a program's prompts.

    Args:
        title: of the page.
        prompts: of the program, one for each predictor.
        before: of another program, to compare with: what differs stands first, and what is equal is folded.
        programs: those that a server shows, for the links; None for a page that is one file by itself.
    """
    compared = before is not None
    shown = list(_compared(before or prompts, prompts, compared=compared))
    frame, root = ("base.html", None) if programs is None else ("served.html", "/")
    values = {"title": title, "shown": shown, "compared": compared, "programs": programs or []}
    return as_html("prompts.html", root=root, frame=frame, **values)


def _compared(
    before: Sequence[RenderedPrompt], after: Sequence[RenderedPrompt], *, compared: bool
) -> Iterator[ShownPrompt]:
    old, new = ({prompt.predictor: prompt for prompt in prompts} for prompts in (before, after))
    for name in dict.fromkeys([*new, *old]):
        parts = list(_parts(*(_instructions(one.get(name), compared=compared) for one in (old, new))))
        had, has = _demonstrations(old.get(name)) if compared else [], _demonstrations(new.get(name))
        added, removed = ([one for one in these if one not in those] for these, those in ((has, had), (had, has)))
        yield ShownPrompt(name, new.get(name), old.get(name) if compared else None, parts, added, removed)


def _parts(old: Sequence[str], new: Sequence[str]) -> Iterator[Part]:
    for how, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if how == "equal":
            yield Part("same", old[a:b])
        else:
            yield from (Part(kind, lines) for kind, lines in (("del", old[a:b]), ("ins", new[c:d])) if lines)


def _instructions(prompt: RenderedPrompt | None, *, compared: bool) -> list[str]:
    """Return the lines of the messages that are no demonstration: the instructions and the request."""
    if prompt is None:
        return []
    instructions = prompt.instructions if compared else prompt.messages[0][1]
    return [line for text in (instructions, prompt.messages[-1][1]) for line in text.strip().splitlines()]


def _demonstrations(prompt: RenderedPrompt | None) -> list[tuple[str, str]]:
    between = prompt.messages[1:-1] if prompt else []
    return [(asked[1].strip(), replied[1].strip()) for asked, replied in zip(between[::2], between[1::2], strict=False)]
