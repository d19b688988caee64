"""Prompts as a page: demonstrations folded, or what differs between two programs side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..programs.prompts import RenderedPrompt
from .html import as_html


class ShownPrompt(NamedTuple):
    """A predictor's prompt as the page draws it, without the program that it is compared with.

    Attributes:
        prompt: as it is sent.
        ends: role and text of the messages that are no demonstration: the instructions and the request.
        demonstrations: each as what was asked and what was replied.
    """

    prompt: RenderedPrompt
    ends: Sequence[tuple[str, str]]
    demonstrations: Sequence[tuple[str, str]]


class Part(NamedTuple):
    """Lines in a row of one prompt that stand in the other as well, or do not."""

    text: str
    changed: bool


class ComparedPrompt(NamedTuple):
    """A predictor's prompts in two programs; the parts of one that has no such predictor are none."""

    predictor: str
    before: Sequence[Part]
    after: Sequence[Part]


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
        before: of another program, to compare with; each predictor then shows both texts side by side.
        programs: those that a server shows, for the links; None for a page that is one file by itself.
    """
    compared = None if before is None else list(_compared(before, prompts))
    values: dict[str, Any] = {"title": title, "compared": compared, "shown": [_shown(one) for one in prompts]}
    if programs is None:
        return as_html("prompts.html", root=None, frame="base.html", programs=[], **values)
    return as_html("prompts.html", frame="served.html", programs=programs, **values)


def _shown(prompt: RenderedPrompt) -> ShownPrompt:
    first, *between, last = prompt.messages
    pairs = zip(between[::2], between[1::2], strict=False)
    return ShownPrompt(prompt, [first, last], [(asked[1], replied[1]) for asked, replied in pairs])


def _compared(before: Sequence[RenderedPrompt], after: Sequence[RenderedPrompt]) -> Iterator[ComparedPrompt]:
    texts = [{prompt.predictor: prompt.text.splitlines() for prompt in prompts} for prompts in (before, after)]
    for name in dict.fromkeys([*texts[0], *texts[1]]):
        old, new = (text.get(name, []) for text in texts)
        same = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        left = [Part("\n".join(old[a:b]), how != "equal") for how, a, b, _, _ in same if b > a]
        right = [Part("\n".join(new[c:d]), how != "equal") for how, _, _, c, d in same if d > c]
        yield ComparedPrompt(name, left, right)
