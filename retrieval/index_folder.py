"""Indexes: folders that hold a corpus and what is needed to search it, of several kinds. Built, loaded, added to."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import CheckpointError, IndexRefused, QuestreeError, unknown_name
from ..common.files import make_folder, read_unswapped
from ..common.lazy import PartsByName
from .base import IndexRetriever, reopened
from .indexes.construction import MARK, Construction, building
from .indexes.contents import (
    CorpusRecord,
    IndexManifest,
    PassageStore,
    corpus_hash,
    former_folder,
    manifest_in,
    read_manifest,
    seal,
)
from .indexes.index_kind import IndexKind, Order, Report, store_corpus
from .passage import Passage

if TYPE_CHECKING:  # whoever opens an index reads no corpus
    from .corpora.corpus import BadLine
    from .indexes.cluster import Cluster

logger = logging.getLogger(__name__)

AUTO = "auto"
KINDS: PartsByName[IndexKind] = PartsByName(
    __package__,
    {
        "colbert": ".late_interaction.plaid:PLAID",
        "exact": ".late_interaction.exact:EXACT",
        "rerank": ".late_interaction.rerank:RERANK",
        "dense": ".dense:DENSE",
        "bm25": ".bm25:BM25",
        "linked": ".linked.retriever:LINKED",
    },
)
"""Each is imported when it is named."""

EXACT_UP_TO = 5_000
"""Passages up to which ``auto`` is exact search: half a million token embeddings, a tenth of a second a query on two
cores. Above, gather and rerank answers in a third of that whatever the corpus, in a quarter of the bytes, and found as
many gold passages (docs/retrieval.md)."""


def chosen_kind(name: str, passages: int) -> IndexKind:
    """Return the kind of that name; for ``auto``, the one that suits so many passages.

    Raises:
        QuestreeError: if there is no such kind.
    """
    if name == AUTO:
        return KINDS["exact" if passages <= EXACT_UP_TO else "rerank"]
    if name not in KINDS:
        raise QuestreeError(unknown_name("index of kind", name, [AUTO, *KINDS]))
    return KINDS[name]


def build_index(
    corpus: str | Path | Iterable[Passage],
    out: str | Path,
    *,
    kind: str = AUTO,
    checkpoint: str | Path | None = None,
    settings: Any = None,
    precision: Any = "auto",
    devices: Sequence[str] = (),
    cluster: Cluster | None = None,
    corpus_format: str | None = None,
    skip_bad: bool = False,
    bad: list[BadLine] | None = None,
    overwrite: bool = False,
    progress: Report = lambda _: None,
) -> Path:
    """Build an index in ``OUT.building``, put it at ``out`` and return that path.

    If it is interrupted, even killed, the same call continues it: the corpus is read again, finished chunks of
    passages are checked and kept if passages, checkpoint and precision are the same, and the index is, byte for byte,
    that of an uninterrupted build. A failure before anything was encoded leaves nothing.

    Args:
        corpus: a file or folder for ``read_corpus``, or passages.
        out: the index folder; it must not exist, unless ``overwrite`` and it holds an index.
        kind: one of ``KINDS``, or ``auto``: exact late interaction, or gather and rerank, by the corpus's size.
        checkpoint: of the kind's encoder.
        settings: of the kind, as ``BM25Settings`` or ``PlaidSettings``.
        precision: in which the encoder computes; see `Encoder.load`.
        devices: to encode on, a process for each (``cuda:0``, ``cpu``). By default every GPU if there are several;
            otherwise this process encodes, on the GPU or on every core.
        cluster: whose workers encode, in the place of this machine (`connected`).
        corpus_format: of the file; None to recognise it. See ``read_corpus``.
        skip_bad: keep the corpus's good lines; the number of bad ones is in the manifest.
        bad: a list to which the bad lines are appended.
        overwrite: replace the index that is at ``out``.
        progress: called with how far the build is.

    Raises:
        CorpusError: if the corpus cannot be read, or a line of it.
        CheckpointError: if the checkpoint cannot be found or loaded.
        QuestreeError: if ``out`` is taken or being built, the disk is full, or PLAID has no compiler or too small a
            corpus.
    """
    from .corpora.corpus import CorpusSource

    chosen_kind(kind, 0).check_encodes(*(["--on"] if cluster else []))  # refused before the corpus is read
    source = CorpusSource(corpus, corpus_format=corpus_format, skip_bad=skip_bad, bad=bad)
    order = {"settings": settings, "checkpoint": checkpoint, "precision": precision, "devices": devices}
    with building(Path(out), overwrite=overwrite) as work:
        record = store_corpus(work.folder, source, progress)
        _write(work, chosen_kind(kind, record.passages), record, {**order, "cluster": cluster, "report": progress})
    return Path(out)


def add_to_index(
    corpus: str | Path | Iterable[Passage],
    index: str | Path,
    *,
    devices: Sequence[str] = (),
    cluster: Cluster | None = None,
    corpus_format: str | None = None,
    skip_bad: bool = False,
    bad: list[BadLine] | None = None,
    progress: Report = lambda _: None,
) -> Path:
    """Add passages to an index and return its folder. The result is what building it from all of them gives.

    Finished chunks of the index are kept, so that only new passages are encoded (and at most one chunk of the old).
    The old index can be searched until the new one takes its place; after a failure it is as it was.

    Args:
        corpus: of the new passages.
        index: of ``build_index``.
        devices, cluster: as for ``build_index``, like the others.
        corpus_format: of the file.
        skip_bad: keep the corpus's good lines.
        bad: a list to which the bad lines are appended.
        progress: called with how far it is.

    Raises:
        QuestreeError: if nothing can be added to its kind; the message says why.
        CorpusError: as for ``build_index``; also if the index holds an id already.
        IndexRefused: if there is no index, or it is incomplete, foreign or damaged.
        CheckpointError: if the checkpoint by which it was built cannot be found.
    """
    from .corpora.corpus import CorpusSource

    folder = Path(index)
    source = CorpusSource(corpus, corpus_format=corpus_format, skip_bad=skip_bad, bad=bad)
    read_manifest(folder)  # where there is no index, nothing is made
    with building(folder, overwrite=True) as work:
        manifest = manifest_in(folder)  # now nobody else can replace it
        kind = _known_kind(folder, manifest)
        if kind.cannot_add:
            raise QuestreeError(
                f"Nothing can be added to {folder}, an index of kind {kind.name}: {kind.cannot_add}. "
                "Build it again from the whole corpus."
            )
        kind.check_encodes(*(["--on"] if cluster else []))
        record = store_corpus(work.folder, source, progress, (manifest.corpus, PassageStore(folder)))
        if kind.work:
            _link(folder / kind.work, work.folder / kind.work)
        order = {**kind.again(manifest), "devices": devices, "cluster": cluster, "report": progress}
        _write(work, kind, record, order)
    return folder


def load_index(
    folder: str | Path,
    *,
    corpus: str | Path | Iterable[Passage] | None = None,
    checkpoint: str | Path | None = None,
    full_check: bool = True,
) -> IndexRetriever:
    """Load the retriever of an index folder; nothing is unpickled.

    Args:
        folder: of ``build_index``.
        corpus: refuse the index if it was not built from exactly these passages.
        checkpoint: where the encoder is now, if it moved; it must be the same.
        full_check: compare the checksums of all files (about 1.4 GB a second), not only their sizes.

    Raises:
        IndexRefused: if it is incomplete, foreign, damaged, or stale (another corpus, another checkpoint).
        CheckpointError: if its checkpoint cannot be found or loaded.
    """
    folder = Path(folder)
    manifest, retriever = read_unswapped(
        folder, lambda: former_folder(folder), lambda place: _loaded(place, checkpoint, full=full_check)
    )
    if corpus is not None:
        from .corpora.corpus import CorpusSource

        source = CorpusSource(corpus, skip_bad=manifest.corpus.skipped > 0)
        if corpus_hash(source.passages()) != manifest.corpus.sha256:
            raise IndexRefused(
                f"{folder} is stale: it was built from {manifest.corpus.name} ({manifest.corpus.passages} passages) "
                "and the corpus given holds other passages. Build it again."
            )
    retriever.place = partial(reopened, load_index, str(folder.resolve()), retriever.fingerprint)
    return retriever


def _loaded(folder: Path, checkpoint: str | Path | None, *, full: bool) -> tuple[IndexManifest, IndexRetriever]:
    manifest = manifest_in(folder, full=full)
    passages = PassageStore(folder)
    if len(passages) != manifest.corpus.passages:
        raise IndexRefused(f"{folder} is damaged: it holds {len(passages)} passages of {manifest.corpus.passages}.")
    kind = _known_kind(folder, manifest)
    try:
        return manifest, kind.load(folder, manifest, passages, checkpoint)
    except (IndexRefused, CheckpointError):
        raise
    except (KeyError, TypeError, QuestreeError) as problem:
        told = str(problem).rstrip(".")
        raise IndexRefused(f"{folder} is foreign: its manifest's settings are not known here ({told}).") from problem


def _write(work: Construction, kind: IndexKind, corpus: CorpusRecord, order: dict[str, Any]) -> None:
    """Write the index of the passages in the folder, and its manifest."""
    work.keep_only(kind.work)
    written = kind.write(Order(work.folder, PassageStore(work.folder), **order))
    manifest = IndexManifest(
        kind=kind.name,
        settings=written.settings,
        checkpoint=written.checkpoint,
        corpus=corpus.model_copy(update={"filled": written.filled}),
    )
    surplus = kind.work if kind.cannot_add else ""
    seal(work.folder, manifest, without=[MARK, surplus])
    if surplus:
        work.remove(surplus)
    logger.info("Indexed %d passages of %s at %s (%s).", corpus.passages, corpus.name, work.out, kind.name)


def _link(source: Path, target: Path) -> None:
    """Put the files of a folder into another by links, or by copies on a file system without links."""
    make_folder(target)
    for path in source.iterdir():
        if not (target / path.name).exists():
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copyfile(path, target / path.name)


def _known_kind(folder: Path, manifest: IndexManifest) -> IndexKind:
    if manifest.kind not in KINDS:
        raise IndexRefused(f"{folder} is foreign: its kind, {manifest.kind!r}, is not known here.")
    return KINDS[manifest.kind]
