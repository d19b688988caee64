"""Indexes are built, and passages are added to them."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..common.errors import CheckpointError, IndexRefused, QuestreeError
from ..common.files import in_turn, make_folder, write_atomically
from .base import IndexRetriever
from .checkpoints import checkpoint_of
from .corpora.corpus import CorpusSource
from .index_folder import AUTO, chosen_kind, known_kind, load_index
from .indexes.construction import MARK, Construction, building
from .indexes.contents import DOCUMENTS, CorpusRecord, IndexManifest, PassageStore, corpus_hash, read_manifest, seal
from .indexes.index_kind import IndexKind, Order, Report, store_corpus
from .passage import Passage

if TYPE_CHECKING:
    from .documents.folder import Changes, Documents
    from .indexes.cluster import Cluster

logger = logging.getLogger(__name__)


def build_index(
    corpus: str | Path | Iterable[Passage],
    out: str | Path,
    *,
    kind: str = AUTO,
    checkpoint: str | Path | None = None,
    settings: Any = None,
    cluster: Cluster | None = None,
    overwrite: bool = False,
    progress: Report = lambda _: None,
) -> Path:
    """Build an index at ``out`` and return that path.

    If it is interrupted, even killed, the same call continues it: the corpus is read again, finished chunks of
    passages are checked and kept if passages, checkpoint and precision are the same, and the index is, byte for byte,
    that of an uninterrupted build. A failure before anything was encoded leaves nothing. Where the index is finished,
    the same call leaves it as it is. Where it holds documents of this folder, the same call reads and encodes what
    changed, and the index is, byte for byte, that of a fresh build.

    Args:
        corpus: a folder of documents, one of them or a pattern; a file or folder for ``read_corpus``, what that gives,
            or passages. If bad lines or documents were left out, their number is in the manifest.
        out: the index folder; it must not exist, unless it holds this index, or any one and ``overwrite``.
        kind: one of ``KINDS``, or ``auto``: exact late interaction, or gather and rerank, by the corpus's size.
        checkpoint: of the kind's encoder.
        settings: of the kind, as ``BM25Settings`` or ``PlaidSettings``.
        cluster: whose workers encode, one on each GPU (`connected`); else this process does, on one GPU or every core.
        overwrite: replace the index that is at ``out``.
        progress: called with how far the build is.

    Raises:
        CorpusError: if the corpus cannot be read, or a line of it.
        CheckpointError: if the checkpoint cannot be found or loaded.
        QuestreeError: if ``out`` is taken or being built, the disk is full, or the corpus is too small for PLAID.
    """
    chosen_kind(kind, 0)  # refused before the corpus is read
    order = {"settings": settings, "checkpoint": checkpoint, "cluster": cluster, "report": progress}
    out, source = Path(out), source_of(corpus)
    documents = cast("Documents", source) if source.of_documents else None
    former, same = _followed(source, out, kind, settings, checkpoint) if not overwrite else (None, False)
    if same:
        return out
    with building(out, overwrite=overwrite or former is not None) as work:
        if former:
            read_manifest(out, full=True)
        record = store_corpus(work.folder, source, progress)
        order |= {"documents": documents is not None, "former": former}
        read = documents.record.model_dump_json(indent=1) if documents else ""
        _write(work, chosen_kind(kind, record.passages), record, order, read)
    return out


def load_or_build(corpus: Path, folder: Path) -> IndexRetriever:
    """Return the index of exactly these passages: the one in the folder, or a new one in its place.

    Where another process makes it, this one waits for that. Without the weights of the embedded checkpoint, which are a
    package of their own, it is one of BM25; a warning says so.
    """
    with suppress(IndexRefused):
        return load_index(folder, corpus=corpus)
    with in_turn(folder.with_name(f".{folder.name}.in-turn"), f"making the index {folder}"):
        with suppress(IndexRefused):
            return load_index(folder, corpus=corpus)
        try:
            built = build_index(corpus, folder, overwrite=True)
        except CheckpointError as missing:
            logger.warning("%s Until then %s is an index of BM25; remove it afterwards.", missing, folder)
            built = build_index(corpus, folder, kind="bm25", overwrite=True)
        return load_index(built)


def document_changes(source: Documents, out: Path, kind: str, settings: Any, checkpoint: str | Path | None) -> Changes:
    """Return what `build_index` will find changed; nothing is written, and no document taken apart."""
    _followed(source, out, kind, settings, checkpoint)
    return source.changes


def _followed(
    source: CorpusSource, out: Path, kind: str, settings: Any, checkpoint: str | Path | None
) -> tuple[Path | None, bool]:
    """Return the version of an index of these documents that is followed, if any, and whether the index is as asked."""
    held = _held(out, kind, settings, checkpoint)
    if not source.of_documents:
        return None, held is not None and corpus_hash(source.passages()) == held.corpus.sha256
    documents = cast("Documents", source)
    documents.for_kind(chosen_kind(kind, 0), checkpoint, settings)
    version = out / held.version if held else None
    if version is None or not documents.follow(version):
        return None, False
    return version, documents.as_before()


def source_of(corpus: str | Path | Iterable[Passage], *, strict: bool = False, **read: Any) -> CorpusSource:
    """Return a corpus, whichever it is: documents, or what `read_corpus` reads, or passages.

    Args:
        strict: refuse all documents for one that cannot be read.
        read: of other corpora, as for `read_corpus`.
    """
    if isinstance(corpus, CorpusSource):
        return corpus
    if isinstance(corpus, (str, Path)) and not read.get("corpus_format"):
        from .documents.folder import Documents, are_documents

        if are_documents(corpus):
            return Documents(corpus, strict=strict)
    return CorpusSource(corpus, **read)


def _held(out: Path, kind: str, settings: Any, checkpoint: str | Path | None) -> IndexManifest | None:
    """Return the manifest of the index at ``out`` if it was made as is asked for, of whichever corpus."""
    try:
        manifest = read_manifest(out)
    except IndexRefused:
        return None
    asked = chosen_kind(kind, manifest.corpus.passages)
    wanted = asdict(settings or asked.settings()) if asked.settings else {}
    alike = (
        asked.name == manifest.kind
        and all(value in (None, manifest.settings[name]) for name, value in wanted.items())  # None: the encoder's own
        and (not asked.find or asked.find(checkpoint).fingerprint == getattr(manifest.checkpoint, "fingerprint", None))
    )
    return manifest if alike else None


def add_to_index(
    corpus: str | Path | Iterable[Passage],
    index: str | Path,
    *,
    cluster: Cluster | None = None,
    progress: Report = lambda _: None,
) -> Path:
    """Add passages to an index and return its folder. The result is what building it from all of them gives.

    Finished chunks of the index are kept, so that only new passages are encoded (and at most one chunk of the old).
    The old index can be searched until the new one takes its place; after a failure it is as it was.

    Args:
        corpus: of the new passages.
        index: of ``build_index``.
        cluster: as for ``build_index``, like the others.
        progress: called with how far it is.

    Raises:
        QuestreeError: if nothing can be added to its kind; the message says why.
        CorpusError: as for ``build_index``; also if the index holds an id already.
        IndexRefused: if there is no index, or it is incomplete, foreign or damaged.
        CheckpointError: if the checkpoint by which it was built cannot be found.
    """
    folder = Path(index)
    read_manifest(folder)  # where there is no index, nothing is made
    with building(folder, overwrite=True) as work:
        manifest = read_manifest(folder, full=True)  # now nobody else can replace it
        held = folder / manifest.version
        kind = known_kind(folder, manifest)
        if kind.cannot_add:
            raise QuestreeError(
                f"Nothing can be added to {folder}, an index of kind {kind.name}: {kind.cannot_add}. "
                "Build it again from the whole corpus."
            )
        record = store_corpus(work.folder, corpus, progress, (manifest.corpus, PassageStore(held)))
        if kind.work:
            _link(held / kind.work, work.folder / kind.work)
        order = {"settings": kind.stored(manifest), "precision": manifest.settings.get("precision", "auto")}
        if kind.find:
            order["checkpoint"] = checkpoint_of("The index", manifest.checkpoint, kind.find).name
        _write(work, kind, record, {**order, "cluster": cluster, "report": progress, "before": held})
    return folder


def _write(
    work: Construction, kind: IndexKind, corpus: CorpusRecord, order: dict[str, Any], documents: str = ""
) -> None:
    """Write the index of the passages in the folder, what was read of documents, and its manifest."""
    work.keep_only(kind.work)
    written = kind.write(Order(work.folder, PassageStore(work.folder), **order))
    manifest = IndexManifest(
        kind=kind.name,
        settings=written.settings,
        checkpoint=written.checkpoint,
        corpus=corpus.model_copy(update={"filled": written.filled}),
    )
    if kind.work and kind.cannot_add:
        work.remove(kind.work)
    if documents:
        write_atomically(work.folder / DOCUMENTS, documents)
    seal(work.folder, manifest, without=[MARK])
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
