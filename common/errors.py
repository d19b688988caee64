"""The one family of errors that a user is meant to read, and their words for a name that stands for nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class QuestreeError(Exception):
    """Something that the user can put right. The message says what is wrong, where, and what to do."""


class CorpusError(QuestreeError):
    """A corpus file that cannot be read, or a line of one: the message names the file and the line."""


class CheckpointError(QuestreeError):
    """A model checkpoint that is absent, incomplete, or of a kind that cannot be loaded safely."""


class IndexRefused(QuestreeError):
    """An index folder that must not be searched: incomplete, foreign, stale or damaged."""


class QueryError(QuestreeError):
    """A search that makes no sense: an empty query, or fewer than one passage asked for."""


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Turn the absence of a package, where a block imports it, into an error that names the extra with the package.

    Args:
        name: of the extra, in setup.cfg.

    Raises:
        QuestreeError: if an import fails.
    """
    try:
        yield
    except ImportError as missing:
        raise QuestreeError(f"There is no package {missing.name!r} here: pip install 'questree[{name}]'") from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the nearest known name as a question with a space before it, or nothing if none is near."""
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {nearest[0]!r}?" if nearest else ""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that stands for nothing: it tells the nearest known name, and all of them."""
    names = list(known)
    return f"There is no {what} {name!r}.{did_you_mean(name, names)} There are: {', '.join(names)}."
