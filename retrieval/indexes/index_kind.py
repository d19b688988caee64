"""A kind of index: how it is written and loaded. All kinds stand in `questree.retrieval.index_folder`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import QuestreeError
from ...common.registry import settings_of
from ..base import IndexRetriever
from ..passage import Passage
from .contents import CheckpointRecord, CorpusRecord, IndexManifest, PassageStore, write_passages

if TYPE_CHECKING:
    from .cluster import Cluster


@dataclass(frozen=True)
class BuildProgress:
    """How far a build has come.

    Attributes:
        stage: what is being done, as a person would say it.
        done: how many passages (or what else the stage counts) are done.
        total: of how many; 0 if that is not known.
        kept: how many of those done are from an earlier, interrupted run.
        bytes: what passages and embeddings will take on disk; 0 if that is not known.
    """

    stage: str
    done: int
    total: int
    kept: int = 0
    bytes: int = 0


Report = Callable[[BuildProgress], None]
Source = str | Path | Iterable[Passage]
"""A corpus: a file or folder for ``read_corpus``, what that gives, or passages."""


def store_corpus(
    folder: Path, corpus: Source, report: Report, behind: tuple[CorpusRecord, Iterable[Passage]] | None = None
) -> CorpusRecord:
    """Write the passages of a corpus into a folder, behind those of an index if there is one; return what they are.

    ``behind`` is the record of the index to which they are added, and its passages.
    """
    from ..corpora.corpus import CorpusSource

    source = corpus if isinstance(corpus, CorpusSource) else CorpusSource(corpus)
    record, there = behind or (None, ())

    def passages() -> Iterator[Passage]:
        for number, passage in enumerate(source.passages(there), 1):
            if number % 1000 == 0:
                report(BuildProgress("reading", number, 0))
            yield passage

    count, digest = write_passages(folder, passages())
    name, skipped = (f"{record.name} + {source.name}", record.skipped) if record else (source.name, 0)
    return CorpusRecord(name=name, sha256=digest, passages=count, skipped=skipped + len(source.bad))


@dataclass(frozen=True)
class Order:
    """An order to write an index of a kind.

    Attributes:
        folder: of the index under construction; it holds the passages already, and what an interrupted run left.
        settings: an instance of the kind's settings, or None for the defaults.
        checkpoint: of its encoder, by name or folder; None for the kind's default.
        cluster: whose workers encode; if there is none, this process does.
        report: called with how far it is.
        before: the folder of the index whose passages are the first of these, if the others are added to it.
        documents: whether the passages are of documents, and encoded in groups that the next version knows again.
        former: the folder of the version from which such groups are taken.
    """

    folder: Path
    passages: PassageStore
    settings: Any = None
    checkpoint: str | Path | None = None
    precision: Any = "auto"
    cluster: Cluster | None = None
    report: Report = lambda _: None
    before: Path | None = None
    documents: bool = False
    former: Path | None = None


@dataclass(frozen=True)
class WrittenIndex:
    """What the manifest says of an index beside its corpus; ``load`` knows nothing more.

    Its settings are those of the kind (`IndexKind.stored`), and what else was chosen.
    """

    settings: dict[str, Any]
    checkpoint: CheckpointRecord | None = None
    filled: int = 0
    """How many passages fill the encoder's window."""


@dataclass(frozen=True)
class IndexKind:
    """A kind of index: how it is written and how it is loaded.

    Attributes:
        name: as in ``--kind`` and in the manifest.
        write: writes the index of ``Order.passages`` into ``Order.folder``. It may be called in a folder in which it
            was interrupted before, and leaves the same bytes as an uninterrupted call.
        load: makes the retriever from folder, manifest and passages.
        settings: the class of its settings; None if it has none.
        work: the folder, in the index under construction, of finished work that outlives an interruption. The finished
            index holds it if passages can be added.
        find: gives the `Checkpoint` of its encoder by name; None if it has no encoder.
        cannot_add: why passages cannot be added to an index of this kind; empty if adding gives exactly what building
            it again gives.
    """

    name: str
    description: str
    write: Callable[[Order], WrittenIndex]
    load: Callable[[Path, IndexManifest, PassageStore], IndexRetriever]
    settings: type[Any] | None = None
    work: str = ""
    find: Callable[[str | Path | None], Any] | None = None
    cannot_add: str = ""

    def stored(self, manifest: IndexManifest) -> Any:
        """Return the settings by which an index was built; None if the kind has none."""
        if self.settings is None:
            return None
        stored = getattr(self.settings, "OLDER", {}) | manifest.settings
        return settings_of(self.name, self.settings, {one.name: stored[one.name] for one in fields(self.settings)})

    def named_settings(self, given: Mapping[str, Any]) -> Any:
        """Return the settings of these names and values."""
        if self.settings is None:
            raise QuestreeError(f"An index of kind {self.name} has no settings.")
        return settings_of(self.name, self.settings, given)
