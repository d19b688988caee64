"""questree index"""

from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..common.errors import QuestreeError
from .options import named_values, refuse
from .screen import echo

if TYPE_CHECKING:
    from ..retrieval.corpora.corpus import CorpusSource
    from ..retrieval.indexes.index_kind import Report


def index(
    corpus: Path,
    out: Path | None = None,
    engine: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
    kind: str = "auto",
    checkpoint: str | None = None,
    form: Annotated[str | None, typer.Option("--format")] = None,
    values: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    on: str | None = None,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    skip_bad: bool = False,
    overwrite: bool = False,
    add: bool = False,
    links: bool = False,
    dry_run: bool = False,
    strict: bool = False,
) -> None:
    """Make an index of documents or passages, for the --retriever of every command.

    The same command goes on where it was interrupted, and leaves a finished index as it is; of a folder of documents it
    reads and encodes what changed.

    Args:
        corpus: A folder of documents (PDF, Word, PowerPoint, Excel, HTML, EPUB, Markdown, text, CSV, notebooks), one of
            them or a pattern in quotes; or passages: JSONL (id, title, text; or contents), a JSON array, CSV, Parquet,
            TSV of ColBERT or DPR, HotpotQA's Wikipedia abstracts (archive or folder), KILT's knowledge source; also
            .gz, .bz2, .xz. 'mini' is the bundled one.
        out: Folder of the index.
        engine: Instead of --out, a collection of Qdrant: qdrant://HOST:6333/COLLECTION, or qdrant:FOLDER/COLLECTION
            without a server.
        kind: Kind of index; all of them: questree list retrievers. auto is exact late interaction up to 5,000 passages,
            else gather and rerank (rerank).
        checkpoint: The kind's encoder, by name or folder. Default: one made from MiniLM, offline.
        form: Format of the corpus. Default: recognised.
        values: A setting of the kind, nbits=2 of colbert; repeat it.
        on: Cluster whose workers encode, one a GPU: 'ray' starts one on this machine; ray://HOST:10001.
        workers: Workers on the cluster of --on. Default: one for each GPU, or for four cores.
        skip_bad: Leave out lines that cannot be read; say so.
        overwrite: Replace the index that is there.
        add: Add to the index that is there, as if it were built from all passages.
        links: Make its links too, beside it (OUT.links), for --retriever linked:OUT.
        dry_run: Of documents, only say how many are new, changed or gone.
        strict: Stop at a document that cannot be read; else it is named and left out.
    """
    from ..data import MINI_CORPUS
    from ..retrieval import KINDS
    from ..retrieval.documents.folder import Documents
    from ..retrieval.index_builder import document_changes, source_of
    from ..retrieval.indexes.cluster import connected
    from .progress import progress_bars

    named = kind != "auto"
    refuse(
        ((out is None) == (engine is None), "name one place for the index: --out FOLDER, or --engine ADDRESS"),
        (
            add and (overwrite or checkpoint or values or named),
            "an index is added to as it was built: leave out --kind, --checkpoint, --set, --overwrite",
        ),
        (
            engine is not None and (on or named),
            "--engine has one kind, and encodes in this process: leave out --kind, --on",
        ),
        (links and engine is not None, "links stand beside an index in a folder: make one of kind linked instead"),
        (values and not named and engine is None, "--set is of one kind: name it with --kind"),
        (workers and not on, "--workers counts those of a cluster: name it with --on, or leave --workers out"),
    )
    _check_encodes(kind, out if add else None, {"--on": on, "--checkpoint": checkpoint})
    if corpus == Path("mini") and not corpus.exists():
        corpus = MINI_CORPUS
    settings = named_values(values, "--set")
    new = None if add else {"checkpoint": checkpoint, "overwrite": overwrite}
    with connected(on, workers) if on else nullcontext() as cluster, progress_bars() as bars:
        source = source_of(corpus, corpus_format=form, skip_bad=skip_bad, strict=strict)
        refuse(
            ((dry_run or strict) and not source.of_documents, "--dry-run and --strict are of documents"),
            (source.of_documents and add, "new documents go into the folder that is indexed: leave --add out"),
            (dry_run and engine, "--dry-run compares documents with an index in a folder: name --out"),
        )
        if isinstance(source, Documents) and out and dry_run:
            checked = KINDS[kind].named_settings(settings) if settings else None
            echo(f"{document_changes(source, out, kind, checked, checkpoint)}; nothing was done")
            return
        if engine is not None:
            if isinstance(source, Documents):
                source.for_kind(KINDS["exact"], checkpoint, None)  # Qdrant has the encoder of late interaction
            said = _uploaded(source, engine, settings, new, progress=bars.index)
        else:
            how = {"cluster": cluster, "progress": bars.index}
            said = _built(source, cast(Path, out), kind, settings, new, links=links, **how)
    for line in source.bad:
        place = f", line {line.number}" if line.number else ""
        echo(f"left out {line.file}{place}: {line.problem}", err=True)
    if isinstance(source, Documents):
        said += f"\n{source.told()}"
    echo(said)


def _check_encodes(kind: str, added_to: Path | None, encoding: dict[str, Any]) -> None:
    """Refuse options of an encoder where the index has none: one of this kind, or the one that is added to."""
    from ..retrieval import read_manifest
    from ..retrieval.index_folder import chosen_kind

    name = read_manifest(added_to).kind if added_to else kind
    options = [option for option, given in encoding.items() if given]
    if not chosen_kind(name, 0).work and options:
        raise QuestreeError(f"An index of kind {name} has nothing to encode: leave out {' and '.join(options)}.")


def _built(
    source: "CorpusSource",
    out: Path,
    kind: str,
    settings: dict[str, Any],
    new: dict[str, Any] | None,
    *,
    links: bool,
    **how: Any,
) -> str:
    """Make the index in a folder, or add to it; return what the user is told."""
    from rich.filesize import decimal

    from ..retrieval import KINDS, add_to_index, build_index, read_manifest
    from ..retrieval.indexes.contents import held_version
    from ..retrieval.linked.retriever import links_folder, make_links

    there = ""
    if new is None:
        add_to_index(source, out, **how)
    else:
        before = held_version(out)
        checked = KINDS[kind].named_settings(settings) if settings else None
        build_index(source, out, kind=kind, settings=checked, **new, **how)
        there = " is there already" if before == held_version(out) else ""
    manifest = read_manifest(out)
    size = decimal(sum(file.bytes for file in manifest.files.values()))
    held = f"{manifest.corpus.passages:,} passages, {manifest.kind}, {size}, {manifest.fingerprint}"
    said = f"{out}{there}: {held}; use it with --retriever {quote(str(out))}"
    beside = links_folder(out)
    if beside == out or not (links or beside.exists()):
        return said
    make_links(out, how["progress"])
    return f"{said}\n{beside}: its links; use them with --retriever {quote(f'linked:{out}')}"


def _uploaded(
    source: "CorpusSource", engine: str, settings: dict[str, Any], new: dict[str, Any] | None, progress: "Report"
) -> str:
    """Make the collection of Qdrant, or add to it; return what the user is told."""
    from ..common.registry import settings_of
    from ..retrieval.qdrant import upload
    from ..retrieval.qdrant.layout import QdrantSettings

    if new is None:
        manifest = upload.add(source, engine, progress=progress)
    else:
        checked = settings_of("qdrant", QdrantSettings, settings)
        manifest = upload.upload(source, engine, settings=checked, **new, progress=progress)
    held = f"{manifest.corpus.passages:,} passages, {manifest.kind}, {manifest.fingerprint}"
    return f"{engine}: {held}; use it with --retriever {quote(engine)}"
