"""Programs by name. To add one: its file in this folder, and its class here."""

from __future__ import annotations

from .blendfilter import BlendFilter
from .chain_of_reviews import ChainOfReviews
from .program import Program
from .searchain import SearChain
from .tree_of_reviews import TreeOfReviews

_KINDS: list[type[Program]] = [SearChain, TreeOfReviews, ChainOfReviews, BlendFilter]
PROGRAMS: dict[str, type[Program]] = {kind.name: kind for kind in _KINDS}
