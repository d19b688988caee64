"""A corpus brought into a collection of Qdrant: encoded, uploaded, resumed after an interruption, added to.

A passage's point has the number of its place in the corpus. So an interrupted upload is continued from any machine:
what is there is left as it is, and only the rest is encoded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...common.errors import IndexRefused
from ...common.manifests import installed_versions
from ..base import batched
from ..bm25 import BM25Settings
from ..checkpoints import checkpoint_of
from ..indexes.chunks import bounds, chunk_count
from ..indexes.contents import CorpusRecord, IndexManifest, PassageStore
from ..indexes.index_kind import BuildProgress, Report, Source, store_corpus
from ..late_interaction.checkpoint import late_checkpoint
from ..late_interaction.encoder import Encoder
from ..passage import Passage
from ..serving.remote_requests import RemoteError
from .address import QdrantAddress
from .collection import Collection, State
from .layout import QdrantSettings, point_of
from .words import mean_length, passage_words

logger = logging.getLogger(__name__)

KIND = "qdrant"
_POINTS_TOGETHER = 32
"""Of a request: some 12 MB at 220 tokens of 128 dimensions. A server of Qdrant takes 32 MB."""


def upload(
    corpus: Source,
    address: str,
    *,
    checkpoint: str | Path | None = None,
    settings: QdrantSettings | None = None,
    overwrite: bool = False,
    progress: Report = lambda _: None,
) -> IndexManifest:
    """Make a collection of a corpus, and return what it holds.

    If it is interrupted, even killed, the same call continues it; if all is there, nothing is done.

    Args:
        overwrite: delete the index that the address has, if it is another one.
        progress: called with how far it is.
    """
    collection, chosen = Collection(QdrantAddress.parse(address)), settings or QdrantSettings()
    there = collection.state()
    with _stored(corpus, progress) as (record, passages):
        precision = "auto"
        if there is not None and there.manifest.corpus.sha256 == record.sha256:
            precision = there.manifest.settings.get("precision", precision)  # of the machine that began
        encoder = Encoder.load(late_checkpoint(checkpoint), precision)
        progress(BuildProgress("weighing words", 0, 0))
        words = BM25Settings()
        manifest = _manifest(record, encoder, asdict(chosen), asdict(words), mean_length(passages, words))
        if there is not None and overwrite and there.manifest.fingerprint != manifest.fingerprint:
            collection.drop()
            there = None
        if there is None:
            there = State(manifest=manifest)
            collection.create(encoder.dim, chosen, there)
        _check_same(collection, there, manifest, "replace it (--overwrite), add to it (--add), or name another one")
        _bring(collection, there, encoder, passages, progress)
    return manifest


def add(corpus: Source, address: str, *, progress: Report = lambda _: None) -> IndexManifest:
    """Put passages behind those of a collection, and return what it holds.

    Only new passages are encoded, and their words are weighed by the mean length of the first upload's. Until it has
    ended, the collection is not searched.

    Args:
        address: of an index of ``upload``.
        progress: called with how far it is.
    """
    collection, there = Collection.held(address)
    base = there.manifest if there.finished else there.base
    if base is None:
        raise IndexRefused(f"{address} is unfinished: run the command that began it again, and then add to it.")
    behind = base.corpus, collection.passages(base.corpus.passages)
    with _stored(corpus, progress, behind) as (record, passages):
        encoder = Encoder.load(checkpoint_of(address, base.checkpoint, late_checkpoint), base.settings["precision"])
        made = [base.settings[name] for name in ("qdrant", "bm25", "mean_length")]
        manifest = _manifest(record, encoder, *made)
        if there.finished:
            there = State(manifest=manifest, base=base)
        _check_same(collection, there, manifest, "add what was being added, or replace the whole (--overwrite)")
        _bring(collection, there, encoder, passages, progress)
    return manifest


@contextmanager
def _stored(
    corpus: Source, report: Report, behind: tuple[CorpusRecord, Iterable[Passage]] | None = None
) -> Iterator[tuple[CorpusRecord, PassageStore]]:
    """Give passages that can be read again by their positions, and what they are."""
    with TemporaryDirectory(prefix="questree-corpus-") as folder:
        yield store_corpus(Path(folder), corpus, report, behind), PassageStore(Path(folder))


def _manifest(
    corpus: CorpusRecord, encoder: Encoder, settings: dict[str, Any], words: dict[str, Any], mean: float
) -> IndexManifest:
    made = {"dim": encoder.dim, "window": encoder.window, "precision": encoder.precision}
    return IndexManifest(
        kind=KIND,
        settings={**made, "qdrant": settings, "bm25": words, "mean_length": mean},
        checkpoint=encoder.checkpoint,
        corpus=corpus,
        versions=installed_versions(["questree", "qdrant-client", "colbert-ai", "torch", "transformers"]),
    )


def _check_same(collection: Collection, there: State, wanted: IndexManifest, advice: str) -> None:
    """Refuse to write an index over another one."""
    held = there.manifest
    if held.fingerprint == wanted.fingerprint:
        return
    how_far = "another" if there.finished else "another, unfinished"
    encoder = f"encoded by {held.checkpoint.name}" if held.checkpoint else ""
    described = f"{held.corpus.passages:,} passages of {held.corpus.name}, {encoder}, {held.settings['qdrant']}"
    raise IndexRefused(f"{collection.address} holds {how_far} index ({described}): {advice}.")


def _bring(collection: Collection, state: State, encoder: Encoder, passages: PassageStore, report: Report) -> None:
    """Write the passages of an index that are missing in its collection; what stops it says how to go on."""
    if state.finished and collection.count() == len(passages):
        return
    how = f"What is uploaded stays in {collection.address}: the same command goes on from there."
    try:
        collection.mark(state.model_copy(update={"finished": False}))
        _write_missing(collection, state.manifest, encoder, passages, report)
        _check_not_replaced(collection, state.manifest)
        collection.mark(State(manifest=state.manifest, finished=True))
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(how) from stop
    except RemoteError as problem:
        raise RemoteError(f"{problem} {how}") from problem
    if encoder.filled:
        said = "%d passages fill the window of %d tokens; what stands beyond it is not searched."
        logger.warning(said, encoder.filled, encoder.window)


def _write_missing(
    collection: Collection, manifest: IndexManifest, encoder: Encoder, passages: PassageStore, report: Report
) -> None:
    mean, bm25 = manifest.settings["mean_length"], BM25Settings(**BM25Settings.OLDER | manifest.settings["bm25"])
    done = kept = 0
    for number in range(chunk_count(len(passages))):
        positions = range(*bounds(number, len(passages)))
        there = collection.there(positions)
        done, kept = done + len(there), kept + len(there)
        report(BuildProgress("uploading", done, len(passages), kept=kept))
        new = [position for position in positions if position not in there]
        chunk = [passages[position] for position in new]
        rows = encoder.passages([passage.shown() for passage in chunk])
        points = map(point_of, new, chunk, passage_words(chunk, bm25, mean), (matrix.numpy() for matrix in rows))
        for some in batched(points, _POINTS_TOGETHER):
            _check_not_replaced(collection, manifest)
            collection.put(some)
            done += len(some)
            report(BuildProgress("uploading", done, len(passages), kept=kept))


def _check_not_replaced(collection: Collection, manifest: IndexManifest) -> None:
    """Raise if another upload has replaced the index meanwhile: passages of two corpora would mix under one name."""
    there = collection.state()
    if there is None or there.manifest.fingerprint != manifest.fingerprint:
        raise IndexRefused(f"Another upload has replaced the index at {collection.address}: this one has ended.")
