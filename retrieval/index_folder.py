"""Indexes: folders that hold a corpus and what is needed to search it, of several kinds, and how they are loaded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ..common.errors import CheckpointError, IndexRefused, QuestreeError, unknown_name
from ..common.lazy import PartsByName
from .base import IndexRetriever, reopened
from .indexes.contents import IndexManifest, PassageStore, corpus_hash, read_index
from .indexes.index_kind import IndexKind
from .passage import Passage

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
    """Return the kind of that name; for ``auto``, the one that suits so many passages."""
    if name == AUTO:
        return KINDS["exact" if passages <= EXACT_UP_TO else "rerank"]
    if name not in KINDS:
        raise QuestreeError(unknown_name("index of kind", name, [AUTO, *KINDS]))
    return KINDS[name]


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
    manifest, retriever = read_index(folder, partial(_loaded, folder, checkpoint), full=full_check)
    if corpus is not None:
        from .corpora.corpus import CorpusSource

        source = CorpusSource(corpus, skip_bad=manifest.corpus.skipped > 0)
        if corpus_hash(source.passages()) != manifest.corpus.sha256:
            raise IndexRefused(
                f"{folder} is stale: it was built from {manifest.corpus.name} ({manifest.corpus.passages} passages) "
                "and the corpus given holds other passages. Build it again."
            )
    retriever.folder = folder.resolve().name
    retriever.place = partial(reopened, load_index, str(folder.resolve()), retriever.fingerprint)
    return retriever


def _loaded(
    index: Path, checkpoint: str | Path | None, place: Path, manifest: IndexManifest
) -> tuple[IndexManifest, IndexRetriever]:
    kind = known_kind(index, manifest)
    if checkpoint is not None and manifest.checkpoint is not None:
        moved = manifest.checkpoint.model_copy(update={"name": str(checkpoint)})
        manifest = manifest.model_copy(update={"checkpoint": moved})
    try:
        return manifest, kind.load(place, manifest, PassageStore(place))
    except (IndexRefused, CheckpointError):
        raise
    except Exception as problem:  # of whichever library reads its files; they are as they were written
        told = str(problem).rstrip(".")
        raise IndexRefused(f"{index} is foreign, or of other libraries: it cannot be read here ({told}).") from problem


def known_kind(folder: Path, manifest: IndexManifest) -> IndexKind:
    """Return the kind of an index."""
    if manifest.kind not in KINDS:
        raise IndexRefused(f"{folder} is foreign: its kind, {manifest.kind!r}, is not known here.")
    return KINDS[manifest.kind]
