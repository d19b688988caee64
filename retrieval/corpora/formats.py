"""The forms of corpora that are read; a row each, the particular before the general, as they are recognised."""

from __future__ import annotations

from pathlib import Path

from ...common.errors import CorpusError
from ...common.names import unknown_name
from .corpus_format import CorpusFormat
from .hotpotqa import HOTPOTQA
from .json_lines import JSON_LINES
from .kilt import KILT
from .tsv import COLBERT_TSV, DPR_TSV

FORMATS: dict[str, CorpusFormat] = {form.name: form for form in (HOTPOTQA, KILT, DPR_TSV, COLBERT_TSV, JSON_LINES)}


def named_format(name: str) -> CorpusFormat:
    """The form of that name.

    Raises:
        CorpusError: there is none.
    """
    if name not in FORMATS:
        raise CorpusError(unknown_name("corpus format", name, FORMATS))
    return FORMATS[name]


def recognised_format(path: Path, first: str) -> CorpusFormat:
    """The form of a file with that name (without a compression's suffix) and that first line; JSON lines at last."""
    return next((form for form in FORMATS.values() if form.recognises(path, first)), JSON_LINES)
