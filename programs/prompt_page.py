"""Prompts as one self-contained page: demonstrations folded, and what differs between two programs in colours."""

from __future__ import annotations

import difflib
from string import Template

from ..common.text import in_page
from .prompts import RenderedPrompt


def as_page(title: str, prompts: list[RenderedPrompt], before: list[RenderedPrompt] | None = None) -> str:
    """Return the page. Everything in it is escaped.

    Args:
        title: of the page.
        prompts: of a program, one for each predictor.
        before: of another program, to compare with; each predictor then shows both texts side by side.
    """
    if before is None:
        sections = [_section(_heading(prompt), _messages(prompt)) for prompt in prompts]
    else:
        sections = [_section(name, *sides) for name, *sides in _sides(before, prompts)]
    return _PAGE.substitute(title=in_page(title), sections="".join(sections))


def _heading(prompt: RenderedPrompt) -> str:
    about = f"about {prompt.tokens} tokens, {prompt.demonstrations} demonstrations"
    return f"{prompt.predictor} ({prompt.signature}): {about}"


def _messages(prompt: RenderedPrompt) -> str:
    """Return the messages; the question and reply of each demonstration are folded together."""
    first, *demonstrations, last = prompt.messages
    pairs = zip(demonstrations[::2], demonstrations[1::2], strict=False)
    folded = "".join(
        f"<details><summary>demonstration {number}</summary>{_message(*asked)}{_message(*replied)}</details>"
        for number, (asked, replied) in enumerate(pairs, start=1)
    )
    return f"{_message(*first)}{folded}{_message(*last)}"


def _message(role: str, text: str) -> str:
    return f"<h3>{in_page(role)}</h3><pre>{in_page(text.strip())}</pre>"


def _sides(before: list[RenderedPrompt], after: list[RenderedPrompt]) -> list[tuple[str, str, str]]:
    """Return each predictor's name with its two texts: lines that were taken out are marked, and lines that came in."""
    texts = [{prompt.predictor: prompt.text.splitlines() for prompt in prompts} for prompts in (before, after)]
    sides = []
    for name in dict.fromkeys([*texts[0], *texts[1]]):
        old, new = (text.get(name, []) for text in texts)
        left, right = list[str](), list[str]()
        for how, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            left += _lines(old[a:b], "del" if how != "equal" else "")
            right += _lines(new[c:d], "ins" if how != "equal" else "")
        sides.append((name, f"<pre>{''.join(left)}</pre>", f"<pre>{''.join(right)}</pre>"))
    return sides


def _lines(lines: list[str], tag: str) -> list[str]:
    shown = [in_page(line) or " " for line in lines]
    return [f"<{tag}>{line}</{tag}>\n" if tag else f"{line}\n" for line in shown]


def _section(heading: str, *columns: str) -> str:
    shown = "".join(f"<div>{column}</div>" for column in columns)
    return f"<section><h2>{in_page(heading)}</h2><div class=columns>{shown}</div></section>"


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; border-top: 1px solid #8888; padding-top: 1rem; }
h3 { font-size: .8rem; margin: .8rem 0 .2rem; opacity: .7; text-transform: uppercase; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; margin: 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1.5rem; }
details { margin: .4rem 0; padding-left: .8rem; border-left: 3px solid #8886; }
summary { cursor: pointer; }
del, ins { text-decoration: none; display: inline-block; width: 100%; }
del { background: #d9534f33; }
ins { background: #2e9e5b33; }
</style></head>
<body><h1>$title</h1>$sections</body></html>
""")
