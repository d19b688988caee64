"""The links of an index, kept beside it, and `linked:` in the name of a retriever."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ...common.errors import IndexRefused, QuestreeError
from ...common.files import in_turn
from ..contracts import Retriever
from ..index_builder import build_index
from ..index_folder import load_index
from ..indexes.contents import PassageStore, read_manifest
from ..indexes.index_kind import Report
from .retriever import KIND, LinkedRetriever

logger = logging.getLogger(__name__)


def links_folder(index: Path) -> Path:
    """Return where the links of an index are kept; those of an index of kind ``linked`` are in itself."""
    return index if read_manifest(index).kind == KIND else index.with_name(f"{index.name}.links")


def up_to_date(index: Path) -> bool:
    """Return whether an index has links, and of the passages that it holds now."""
    links = links_folder(index)
    return links.exists() and read_manifest(links).corpus.sha256 == read_manifest(index).corpus.sha256


def make_links(index: Path, report: Report = lambda _: None) -> Path:
    """Make the links of an index, unless they are there and of its passages; return their folder."""
    links = links_folder(index)
    with in_turn(links.with_name(f".{links.name}.in-turn"), f"making the links of {index}"):
        if not up_to_date(index):
            passages = PassageStore(index / read_manifest(index).version)
            build_index(passages, links, kind=KIND, overwrite=links.exists(), progress=report)
    return links


def linked(base: Retriever, indexes: Sequence[Path], links: Path | None = None) -> LinkedRetriever:
    """Return a retriever over links between its passages. Links that an index does not have yet are made.

    Args:
        base: that is linked.
        indexes: on this machine that it searches.
        links: an index of kind ``linked`` over the same passages; by default what is kept beside the first index.

    Raises:
        QuestreeError: if there is neither an index on this machine nor an index of links.
        IndexRefused: if they cannot be read.
    """
    if isinstance(base, LinkedRetriever):
        return base
    if links is None:
        if not indexes:
            raise QuestreeError(
                f"{base.name} has no folder on this machine beside which its links could be. Make an index of its "
                "passages (questree index CORPUS --kind linked --out LINKS) and name it: linked:ADDRESS@LINKS. "
                "Or serve it linked: questree serve-retriever linked:INDEX."
            )
        if not up_to_date(indexes[0]):
            logger.warning("Making the links of %s, once (questree index --links makes them beforehand).", indexes[0])
        links = make_links(indexes[0])
    found = load_index(links)
    if not isinstance(found, LinkedRetriever):
        raise IndexRefused(f"{links} holds no links: it is of kind {found.name}. Make one with --kind {KIND}.")
    return found.over(base)
