"""Passages by number: how a prompt numbers them, and how the marks ``[n]`` of an answer refer to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..metrics import f1, keep_marks, supports_fragment
from ..metrics.answer_scores import MARKS
from ..retrieval import Passage

_COPY = 0.8
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?(?:†[^\]】]*)?")
_LISTED = re.compile(  # "Sources:" and a line for each, at the end of a text
    r"\n\W{0,5}(?:sources?|references?|citations?|passages?)\W{0,5}(?:\n\W{0,5}(?:passage )?\d{1,3}[\]】].*)+\s*\Z",
    re.IGNORECASE,
)


def distinct(groups: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the passages of all groups, each once, in order."""
    return list({passage.id: passage for group in groups for passage in group}.values())


def passages_of(steps: Iterable[Any]) -> list[Passage]:
    """Return the passages of nodes, facts or sentences, each once, in order; some may have none."""
    return distinct([[step.passage] for step in steps if step.passage])


def without_copies(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages without copies of a better one: the same text, or its title with almost the same words."""
    originals: list[Passage] = []
    for passage in passages:
        copied = (passage.title == other.title and f1(passage.text, [other.text]) > _COPY for other in originals)
        if passage.text not in {other.text for other in originals} and not any(copied):
            originals.append(passage)
    return originals


def numbers_of(passages: Sequence[Passage]) -> dict[str, int]:
    """Return the number of each passage, counted from 1, by the passage's id."""
    return {passage.id: number for number, passage in enumerate(passages, start=1)}


def numbered(passages: Sequence[Passage]) -> list[str]:
    """Return the passages as a prompt shows them, each after its number: ``[1] title | text``.

    A list in a prompt has no numbers of its own, and LMs count badly.
    """
    return [f"[{number}] {passage.shown()}" for number, passage in enumerate(passages, start=1)]


def first_of(numbers: Iterable[int], passages: Sequence[Passage]) -> Passage | None:
    """Return the first passage that has one of the numbers, which count from 1; None if there is none."""
    return next((passages[number - 1] for number in numbers if 1 <= number <= len(passages)), None)


def numbered_among(passages: Sequence[Passage], some: Sequence[Passage]) -> list[str]:
    """Return some of the passages as a prompt shows them, each after its number among all the passages."""
    numbers = numbers_of(passages)
    return [f"[{numbers[passage.id]}] {passage.shown()}" for passage in some]


Belongs = Callable[[str, Passage], bool]
"""Whether a fragment of the content may cite a passage."""


def settle_marks(content: str, references: list[Passage], belongs: Belongs) -> tuple[str, list[Passage]]:
    """Return content and references without marks that point nowhere or are false.

    A mark that points nowhere, or to a passage that does not support its fragment, is removed. A reference without a
    mark is dropped. The others are numbered anew, in the order of their first marks.
    ``[1, 2]`` is read as ``[1][2]``, and so are ``[1-2]``, ``[1 and 2]``, ``[Passages 1, 2]`` and ``【1】【2】``.
    A list of sources at the end is left out.

    ``belongs`` tells whether a fragment may cite a passage; see `supported_by` where no steps are known.
    """
    settled = without_loose_marks(_LISTED.sub("", content), len(references))
    settled = keep_marks(settled, lambda fragment, n: belongs(fragment, references[n - 1]))
    kept = list(dict.fromkeys(marked_in(settled)))
    places = {old: new for new, old in enumerate(kept, start=1)}
    return renumbered(settled, places), [references[n - 1] for n in kept]


def without_loose_marks(content: str, count: int) -> str:
    """Return the content without marks above ``count``; ``[1, 2]`` becomes ``[1][2]``."""
    known = {number: number for number in range(1, count + 1)}
    while (settled := renumbered(content, known)) != content:  # removing one may leave another, as in [1[9]]
        content = settled
    return content


def kept_all_marks(content: str, settled: str) -> bool:
    """Return whether settling removed no mark from a content."""
    return len(marked_in(content)) == len(marked_in(settled))


def marked_in(text: str) -> list[int]:
    """Return the numbers of all marks of a text, in order."""
    return [number for found in MARKS.finditer(text) for number in _numbers(found)]


def supported_by(question: str) -> Belongs:
    """Return the rule for content whose steps are not known: see `questree.metrics.supports_fragment`."""
    return lambda fragment, passage: supports_fragment(fragment, f"{passage.title} {passage.text}", question)


def renumbered(content: str, numbers: dict[int, int]) -> str:
    """Return the content with the new number of each mark; a mark without one is removed, with the space before it."""

    def rewrite(found: re.Match[str]) -> str:
        marks = "".join(f"[{numbers[number]}]" for number in _numbers(found) if number in numbers)
        space = found[0][0] if found[0][0].isspace() else ""
        return f"{space}{marks}" if marks else ""

    return MARKS.sub(rewrite, content)


def _numbers(found: re.Match[str]) -> list[int]:
    """Return the numbers of a mark, in order; 1-3 are three."""
    # an LM may write digits without end; the first nine are enough
    ranges = [(int(first[:9]), int((last or first)[:9])) for first, last in _RANGE.findall(found[1])]
    return [number for first, last in ranges for number in range(first, last + 1)]
