"""The kinds of index there are: one row each."""

from __future__ import annotations

from ...common.errors import QuestreeError
from ...common.names import unknown_name
from ..bm25 import BM25
from ..dense.index import DENSE
from ..late_interaction.exact import EXACT
from ..late_interaction.plaid import PLAID
from .index_kind import IndexKind

AUTO = "auto"
KINDS: dict[str, IndexKind] = {kind.name: kind for kind in (PLAID, EXACT, DENSE, BM25)}

EXACT_UP_TO = 25_000
"""Passages up to which ``auto`` is exact search: two or three million token embeddings, half a gigabyte on disk, and
some tenths of a second a query on two cores. Above, PLAID is smaller and faster in search, and misses a little; but
training its centroids takes as long again as encoding, or longer."""


def chosen_kind(name: str, passages: int) -> IndexKind:
    """The kind of that name; for ``auto``, the one that suits so many passages.

    Raises:
        QuestreeError: there is no such kind.
    """
    if name == AUTO:
        return EXACT if passages <= EXACT_UP_TO else PLAID
    if name not in KINDS:
        raise QuestreeError(unknown_name("index of kind", name, [AUTO, *KINDS]))
    return KINDS[name]
