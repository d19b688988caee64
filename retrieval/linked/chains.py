"""Chains of passages, each of which is linked to the one before."""

from __future__ import annotations

from random import Random

import numpy as np

from .links import Links


def draw_chain(links: Links, start: int, length: int, drawn: Random, *, siblings: bool = False) -> list[int]:
    """Return the positions of linked passages, from a first one on; fewer than asked for where no link goes on.

    A link leads to a passage whose title is named, else to one that shares its rarest name.

    Args:
        siblings: link passages that name the same title, in place of one that names the other.
    """
    chain = [start]
    while len(chain) < length:
        titles = links.links.of(np.array(chain[-1:]))[1]
        found = (links.mentions if siblings else links.bearers).of(titles)[1]
        if not set(found.tolist()) - {*chain}:
            found = links.named.of(links.names.of(np.array(chain[-1:]))[1][:1])[1]
        further = sorted(set(found.tolist()) - {*chain})
        if not further:
            break
        chain.append(drawn.choice(further))
    return chain
