"""The text of a document, of whichever kind it is: MarkItDown reads all but PDF, which PDFium reads page by page.

Both are asked for what is in memory already, so that nothing that a document names is fetched.
"""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ...common.errors import needs_extra
from ...common.text import without_surrogates

LARGEST = 500 << 20  # bytes of a document, and of what one that is a zip holds
_PLAIN = (".md", ".markdown", ".txt", ".text", ".rst")
_CONVERTERS = {
    ".csv": "CsvConverter",
    ".docx": "DocxConverter",
    ".epub": "EpubConverter",
    ".htm": "HtmlConverter",
    ".html": "HtmlConverter",
    ".ipynb": "IpynbConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
}
_ZIPPED = (".docx", ".epub", ".pptx", ".xlsx")
SUFFIXES = (".pdf", *_PLAIN, *_CONVERTERS)
"""What is read, by the ends of names."""
_SCANNED = "it holds pictures of pages and no text: let a program for OCR read it (ocrmypdf OLD NEW)"
_DAMAGED = "it is damaged: open it with the program that made it, and save it again"
_CONTROLS = re.compile("[\0-\x08\x0e-\x1f]")
_HYPHEN = re.compile("[\x02\ufffe]\n?")  # what PDFium writes for one at the end of a line
_REMARK = re.compile(r"<!--.*?-->", re.DOTALL)  # MarkItDown numbers slides by them


@dataclass(frozen=True)
class ReadText:
    """A text that was read: a document, or a page of one.

    Attributes:
        marked_up: whether it is Markdown, with headings and tables.
        page: its number, from 1, if it is a page.
    """

    text: str
    marked_up: bool = False
    page: int | None = None


def read_document(name: str, content: bytes) -> list[ReadText]:
    """Return the texts of a document, by the end of its name; lines end with a line feed.

    Raises:
        ValueError: if it cannot be read, or holds no text; says what is wrong and what to do.
        QuestreeError: if a package is lacking.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if not content.strip():
        raise ValueError("it is empty: fill it, or remove it")
    read = _pages(content) if suffix == ".pdf" else [_whole(suffix, content)]
    texts = [one for one in read if one.text.strip()]
    if not texts:
        raise ValueError(_SCANNED if suffix == ".pdf" else "it holds no text: fill it, or remove it")
    return texts


def _pages(content: bytes) -> Iterator[ReadText]:
    with needs_extra("documents"):
        import pypdfium2
    try:
        with pypdfium2.PdfDocument(content) as document:
            for number, page in enumerate(document, 1):
                text = _one_line_end(page.get_textpage().get_text_bounded())
                yield ReadText(_HYPHEN.sub("", text), page=number)
    except pypdfium2.PdfiumError as problem:
        locked = "password" in str(problem).lower()
        raise ValueError("it is encrypted: save it without a password" if locked else _DAMAGED) from problem


def _whole(suffix: str, content: bytes) -> ReadText:
    if suffix in _PLAIN:
        return ReadText(_one_line_end(_decoded(content)), marked_up=suffix in _PLAIN[:2])
    with needs_extra("documents"):
        from markitdown import StreamInfo, converters
    if suffix in _ZIPPED:
        _check_zip(content)
    else:
        content = _decoded(content).encode()
    about = StreamInfo(extension=suffix, charset=None if suffix in _ZIPPED else "utf-8")
    try:
        found = getattr(converters, _CONVERTERS[suffix])().convert(io.BytesIO(content), about)
    except Exception as problem:  # each of the libraries behind it raises its own
        raise ValueError(f"{_DAMAGED} ({type(problem).__name__})") from problem
    return ReadText(_one_line_end(_REMARK.sub("", found.markdown)), marked_up=True)


def _check_zip(content: bytes) -> None:
    """Refuse what is no zip, and one that unpacks to more than is read; Python unpacks no more than it states."""
    try:
        unpacked = sum(one.file_size for one in zipfile.ZipFile(io.BytesIO(content)).infolist())
    except (zipfile.BadZipFile, ValueError, OSError) as problem:
        encrypted = content.startswith(bytes.fromhex("d0cf11e0"))  # as Office keeps a document with a password
        raise ValueError("it is encrypted: save it without a password" if encrypted else _DAMAGED) from problem
    if unpacked > LARGEST:
        raise ValueError(f"it unpacks to {unpacked >> 20:,} MB, more than the {LARGEST >> 20} that are read: split it")


def _decoded(content: bytes) -> str:
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")  # Latin-1 as browsers read it
        if wide or _CONTROLS.search(text):
            text = "\0"
    if "\0" in text:
        raise ValueError("it is no text: save it as text in UTF-8, or give it the ending of what it is")
    return text


def _one_line_end(text: str) -> str:
    return str(without_surrogates(text)).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
