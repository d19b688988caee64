"""A corpus brought into a collection of Qdrant: encoded, uploaded, resumed after an interruption, added to.

A passage's point has the number of its place in the corpus, and says for which index it was made. So an interrupted
upload is continued from any machine: what is there is left as it is, and only the rest is encoded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...common.errors import CorpusError, IndexRefused
from ...common.manifests import installed_versions
from ..bm25 import BM25Settings
from ..corpora.corpus import BadLine, SeenIds, named_corpus, once
from ..encoders import checkpoint_of
from ..indexes.chunks import bounds, chunk_count
from ..indexes.contents import CorpusRecord, Manifest, PassageStore, write_passages
from ..indexes.index_kind import Progress, Report, counted
from ..late_interaction.checkpoint import find_checkpoint
from ..late_interaction.encoder import Encoder
from ..passage import Passage
from ..serving.remote_requests import RemoteError
from .address import QdrantAddress
from .collection import Collection, Point, State
from .layout import QdrantSettings
from .words import mean_length, passage_words

logger = logging.getLogger(__name__)

KIND = "qdrant"
_POINTS_TOGETHER = 32
"""Of a request: some 12 MB at 220 tokens of 128 dimensions. A server of Qdrant takes 32 MB."""


def upload(
    corpus: str | Path | Iterable[Passage],
    address: str,
    *,
    checkpoint: str | Path | None = None,
    settings: QdrantSettings | None = None,
    precision: Any = "auto",
    corpus_format: str | None = None,
    skip_bad: bool = False,
    bad: list[BadLine] | None = None,
    overwrite: bool = False,
    progress: Report = lambda _: None,
) -> Manifest:
    """Make a collection of a corpus, and return what it holds.

    If it is interrupted, even killed, the same call continues it; if all is there, nothing is done.

    Args:
        corpus: a file or folder for ``read_corpus``, or passages. Its texts are in a temporary folder meanwhile.
        address: as `QdrantAddress` reads it.
        checkpoint: of the encoder.
        settings: of the collection.
        precision: in which the encoder computes; see `Encoder.load`. ``auto`` goes on with that of the machine which
            began.
        corpus_format: of the file; None to recognise it. See ``read_corpus``.
        skip_bad: keep the corpus's good lines; the number of bad ones is in the manifest.
        bad: a list to which the bad lines are appended.
        overwrite: delete the index that the address has, if it is another one.
        progress: called with how far it is.

    Raises:
        CorpusError: if the corpus cannot be read, or a line of it.
        CheckpointError: if the checkpoint cannot be found or loaded.
        IndexRefused: if there is another index at the address, or something else.
        RemoteError: if the server does not answer, or refuses.
        QuestreeError: if another process has the folder.
    """
    collection, chosen = Collection(QdrantAddress.parse(address)), settings or QdrantSettings()
    there, found = collection.state(), [] if bad is None else bad
    before = len(found)
    name, read = named_corpus(corpus, corpus_format=corpus_format, skip_bad=skip_bad, bad=found, seen=SeenIds())
    with _stored(read, progress) as (passages, digest):
        record = CorpusRecord(name=name, sha256=digest, passages=len(passages), skipped=len(found) - before)
        if precision == "auto" and there is not None and there.manifest.corpus.sha256 == digest:
            precision = there.manifest.settings.get("precision", precision)  # of the machine that began
        encoder = Encoder.load(find_checkpoint(checkpoint), precision)
        progress(Progress("weighing words", 0, 0))
        manifest = _manifest(record, encoder, chosen, mean_length(passages, BM25Settings()))
        if there is not None and overwrite and there.manifest.fingerprint != manifest.fingerprint:
            collection.drop()
            there = None
        if there is None:
            there = State(manifest=manifest)
            collection.create(encoder.dim, chosen, there)
        _check_same(collection, there, manifest, "replace it (--overwrite), add to it (--add), or name another one")
        _Upload(collection, there, encoder, passages, progress).run()
    return manifest


def add(
    corpus: str | Path | Iterable[Passage],
    address: str,
    *,
    corpus_format: str | None = None,
    skip_bad: bool = False,
    bad: list[BadLine] | None = None,
    progress: Report = lambda _: None,
) -> Manifest:
    """Put passages behind those of a collection, and return what it holds.

    Only new passages are encoded, and their words are weighed by the mean length of the first upload's. Until it has
    ended, the collection is not searched.

    Args:
        corpus: of the new passages.
        address: of an index of ``upload``.
        corpus_format: as for ``upload``, like the others.
        skip_bad: keep the corpus's good lines.
        bad: a list to which the bad lines are appended.
        progress: called with how far it is.

    Raises:
        CorpusError: as for ``upload``; also if the index holds an id already.
        IndexRefused: if there is no index, it is unfinished, or its checkpoint is another one now.
        CheckpointError, RemoteError, QuestreeError: as for ``upload``.
    """
    collection, there = Collection.held(address)
    found = [] if bad is None else bad
    base = there.manifest if there.finished else there.base
    if base is None:
        raise IndexRefused(f"{address} is unfinished: run the command that began it again, and then add to it.")
    seen, before = SeenIds(), len(found)
    old = once(collection.passages(base.corpus.passages), seen)
    name, read = named_corpus(corpus, corpus_format=corpus_format, skip_bad=skip_bad, bad=found, seen=seen)
    with _stored(chain(old, read), progress) as (passages, digest):
        skipped, all_names = base.corpus.skipped + len(found) - before, f"{base.corpus.name} + {name}"
        record = CorpusRecord(name=all_names, sha256=digest, passages=len(passages), skipped=skipped)
        encoder = Encoder.load(checkpoint_of(address, base, find_checkpoint, None), base.settings["precision"])
        chosen, mean = QdrantSettings(**base.settings["qdrant"]), base.settings["bm25"]["mean_length"]
        manifest = _manifest(record, encoder, chosen, mean)
        if there.finished:
            there = State(manifest=manifest, base=base)
        _check_same(collection, there, manifest, "add what was being added, or replace the whole (--overwrite)")
        _Upload(collection, there, encoder, passages, progress).run()
    return manifest


@contextmanager
def _stored(passages: Iterable[Passage], report: Report) -> Iterator[tuple[PassageStore, str]]:
    """Give passages that can be read again by their positions, and their hash."""
    with TemporaryDirectory(prefix="questree-corpus-") as folder:
        count, digest = write_passages(Path(folder), counted(passages, report))
        if not count:
            raise CorpusError("The corpus holds no passage: there is nothing to index.")
        yield PassageStore(Path(folder)), digest


def _manifest(corpus: CorpusRecord, encoder: Encoder, settings: QdrantSettings, mean: float) -> Manifest:
    made = {"dim": encoder.dim, "window": encoder.window, "precision": encoder.precision}
    return Manifest(
        kind=KIND,
        settings={**made, "qdrant": asdict(settings), "bm25": {**asdict(BM25Settings()), "mean_length": mean}},
        checkpoint=encoder.checkpoint.record,
        corpus=corpus,
        versions=installed_versions(["questree", "qdrant-client", "colbert-ai", "torch", "transformers"]),
    )


def _check_same(collection: Collection, there: State, wanted: Manifest, advice: str) -> None:
    """Refuse to write an index over another one.

    Raises:
        IndexRefused: then; says what differs.
    """
    held = there.manifest
    if held.fingerprint == wanted.fingerprint:
        return
    own = {name: value for name, value in held.settings.items() if name != "bm25"}
    parts = {
        "corpus": held.corpus.sha256 == wanted.corpus.sha256,
        "settings": own == {name: wanted.settings[name] for name in own},
        "checkpoint": held.checkpoint == wanted.checkpoint,
    }
    others = " and ".join(f"another {part}" for part, same in parts.items() if not same) or "another mean length"
    how_far = "an index" if there.finished else "an unfinished index"
    described = f"{held.corpus.passages:,} passages of {held.corpus.name}, {held.settings['qdrant']}"
    raise IndexRefused(f"{collection.address} holds {how_far} of {others} ({described}): {advice}.")


class _Upload:
    """Brings the passages of an index into its collection."""

    def __init__(
        self, collection: Collection, state: State, encoder: Encoder, passages: PassageStore, report: Report
    ) -> None:
        self._collection, self._state = collection, state
        self._encoder, self._passages, self._report = encoder, passages, report
        self._index, self._base = state.manifest.fingerprint, state.base.fingerprint if state.base else ""
        self._bm25 = dict(state.manifest.settings["bm25"])
        self._mean = self._bm25.pop("mean_length")
        self._done = self._kept = 0

    def run(self) -> None:
        """Write what is missing.

        Raises:
            RemoteError, KeyboardInterrupt: what stopped it, with a sentence on how to go on.
        """
        if self._state.finished and self._is_whole():
            return
        how = f"What is uploaded stays in {self._collection.address}: the same command goes on from there."
        try:
            self._upload()
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(how) from stop
        except RemoteError as problem:
            raise RemoteError(f"{problem} {how}") from problem

    def _is_whole(self) -> bool:
        return self._collection.count(self._index) == len(self._passages)

    def _upload(self) -> None:
        self._collection.mark(self._state.model_copy(update={"finished": False}))
        for number in range(chunk_count(len(self._passages))):
            self._chunk(range(*bounds(number, len(self._passages))))
        if self._base:
            self._collection.take_over(self._base, self._index)
        self._collection.drop_others(self._index)
        if not self._is_whole():
            raise RemoteError(f"{self._collection.address} does not keep what is written: it counts other points.")
        self._collection.mark(State(manifest=self._state.manifest, finished=True))
        if self._encoder.filled:
            logger.warning(
                "%d passages fill the window of %d tokens; what stands beyond it is not searched.",
                self._encoder.filled,
                self._encoder.window,
            )

    def _chunk(self, positions: range) -> None:
        """Write passages of which none, some or all are there."""
        there = self._collection.made_for(positions)
        new = [position for position in positions if there.get(position) not in (self._index, self._base)]
        self._kept += len(positions) - len(new)
        self._count(len(positions) - len(new))
        passages = [self._passages[position] for position in new]
        words = passage_words(passages, BM25Settings(**self._bm25), self._mean)
        rows = self._encoder.passages([passage.shown() for passage in passages])
        points = map(Point, new, passages, words, (matrix.numpy() for matrix in rows))
        while some := list(islice(points, _POINTS_TOGETHER)):
            self._collection.put(some, self._index)
            self._count(len(some))

    def _count(self, more: int) -> None:
        self._done += more
        self._report(Progress("uploading", self._done, len(self._passages), kept=self._kept))
