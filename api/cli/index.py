"""questree index"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..retrieval import BadLine


def _known(kind: str) -> str:
    """The kinds are looked up when one is asked for, since `questree --help` should be fast."""
    from ..common.errors import QuestreeError
    from ..retrieval.indexes.kinds import chosen_kind

    try:
        chosen_kind(kind, 0)
    except QuestreeError as problem:
        raise typer.BadParameter(str(problem)) from None
    return kind


def _known_format(form: str | None) -> str | None:
    from ..common.errors import QuestreeError
    from ..retrieval.corpora.formats import named_format

    try:
        return form and named_format(form).name
    except QuestreeError as problem:
        raise typer.BadParameter(str(problem)) from None


def index(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="Passages: JSONL (id, title, text), TSV of ColBERT or DPR, HotpotQA's Wikipedia abstracts (archive or "
            "folder), KILT's knowledge source; also .gz, .bz2, .xz."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the index. Until it is done, it is OUT.building.")],
    kind: Annotated[
        str,
        typer.Option(
            callback=_known,
            help="auto is exact late interaction while the corpus is small, else PLAID (colbert). "
            "All of them: questree retrievers.",
        ),
    ] = "auto",
    checkpoint: Annotated[
        str | None,
        typer.Option(help="The kind's encoder, by name or folder. Default: one made from MiniLM, offline."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", callback=_known_format, help="Of the corpus, if it should not be recognised."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the kind, nbits=2 of colbert; may be repeated."),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(help="Where to encode, a process each: cuda:0, cpu; may be repeated. Default: every GPU."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out lines that cannot be read, and say so.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the index that is there.")] = False,
    add: Annotated[
        bool,
        typer.Option("--add", help="Add to the index that is there, as if it were built from all passages."),
    ] = False,
) -> None:
    """Make an index of a corpus, for every command's --retriever. Interrupted, the same command goes on."""
    from rich.console import Console

    from ..common.text import readable_size
    from ..retrieval import KINDS, add_to_index, build_index, read_manifest
    from .index_progress import shown_progress
    from .options import named_values

    if add and (overwrite or checkpoint or values or kind != "auto"):
        raise typer.BadParameter(
            "an index is added to as it was built: leave out --kind, --checkpoint, --set, --overwrite"
        )
    if values and kind == "auto":
        raise typer.BadParameter("--set is of one kind: name it with --kind")
    bad: list[BadLine] = []
    with shown_progress(Console(stderr=True)) as shown:
        reading: dict[str, Any] = {"corpus_format": form, "skip_bad": skip_bad, "bad": bad}
        if add:
            add_to_index(corpus, out, devices=device or (), progress=shown, **reading)
        else:
            build_index(
                corpus,
                out,
                kind=kind,
                checkpoint=checkpoint,
                settings=KINDS[kind].settings_of(named_values(values, "--set")) if values else None,
                devices=device or (),
                overwrite=overwrite,
                progress=shown,
                **reading,
            )
    for line in bad:
        typer.echo(f"left out {line.file}, line {line.number}: {line.problem}", err=True)
    manifest = read_manifest(out)
    size = sum(file.bytes for file in manifest.files.values())
    held = f"{manifest.corpus.passages:,} passages, {manifest.kind}, {readable_size(size)}, {manifest.fingerprint}"
    typer.echo(f"{out}: {held}; use it with --retriever {out}")
