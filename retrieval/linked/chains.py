"""Chains of passages, each of which is linked to the one before."""

from __future__ import annotations

import re
from random import Random

import numpy as np

from ...common.sentences import sentences
from ...metrics import stands_in
from ..contracts import Passages
from ..passage import Passage
from .links import Links
from .names import called, names_in

_SENTENCE = re.compile(r".{24,}[.!?。！？।؟][\"”’)\]*_]*", re.DOTALL)  # unlike a menu, a caption, a heading
_NAMES = re.compile(r"(?:, (?:and )?[^\W\d_a-z][^,]*){2}")  # a list of three, none of which is the only one
_TRIED = 20  # passages that a passage is linked to


def told_in(passage: Passage) -> list[str]:
    """Return the sentences of a passage's running text that list no names; none if most of the text is something else,
    such as links, captions and lists.
    """
    cut = sentences(passage.text)
    told = [one for one in cut if (one.upper() == one.lower() or _SENTENCE.fullmatch(one)) and not _NAMES.search(one)]
    return told if 2 * sum(map(len, told)) > sum(map(len, cut)) else []


def draw_chain(
    passages: Passages, links: Links, start: int, length: int, drawn: Random, *, siblings: bool = False
) -> list[int]:
    """Return the positions of linked passages, from a first one on; fewer than asked for where no link goes on.

    A link leads to a passage whose title is named, else to one that shares its rarest name, in running text. The third
    passage and later ones do not name the first; where the second does, a third follows.

    Args:
        passages: of the corpus.
        siblings: link passages that name the same title, in place of one that names the other.
    """
    chain = [start] if told_in(passages[start]) else []
    while chain and (len(chain) < length or (len(chain) == 2 and not siblings and _leads_back(links, chain[1], start))):
        titles = links.links.of(np.array(chain[-1:]))[1]
        found = (links.mentions if siblings else links.bearers).of(titles)[1]
        if not set(found.tolist()) - {*chain}:
            found = links.named.of(links.names.of(np.array(chain[-1:]))[1][:1])[1]
        further = sorted(set(found.tolist()) - {*chain})
        tried = drawn.sample(further, min(_TRIED, len(further)))
        back = len(chain) > 1 and not siblings
        fit = (one for one in tried if not (back and _leads_back(links, one, start)))
        after = next((one for one in fit if _tied(passages[chain[-1]], passages[one], siblings)), None)
        if after is None:
            break
        chain.append(after)
    return chain


def _leads_back(links: Links, place: int, start: int) -> bool:
    """Return whether a passage names the title of the first one."""
    return int(links.title_of[start]) in links.links.of(np.array([place]))[1]


def _tied(before: Passage, after: Passage, siblings: bool) -> bool:
    """Return whether running text ties two passages: it names the title of the later one, or both hold a name."""
    told, later = told_in(before), told_in(after)
    if siblings or not later:
        return bool(later)
    if stands_in(before.text, title := called(after, True)):
        return stands_in(" ".join(told), title)
    return not _names_in(told).isdisjoint(_names_in(later))


def _names_in(told: list[str]) -> set[int]:
    """Return the names in sentences, but for their first words, which are capitals without being names."""
    return names_in(" ".join(one.partition(" ")[2] for one in told))
