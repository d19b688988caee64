"""Documents of each kind are read; what cannot be read says what is wrong and what to do."""

import codecs
import sys

import documents
import pytest

from questree.common.errors import QuestreeError
from questree.retrieval.documents import texts
from questree.retrieval.documents.texts import read_document

LEAVE = "Leave is approved by Mara Holm."
TABLE = "| who | day |\n| --- | --- |\n| Ana | Monday |"


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("a.pdf", documents.pdf(LEAVE), LEAVE),
        ("a.docx", documents.docx("Leave", LEAVE), f"# Leave\n\n{LEAVE}"),
        ("a.epub", documents.epub("Leave", LEAVE), f"# Leave\n\n{LEAVE}"),
        ("a.pptx", documents.slides("Leave", LEAVE), f"# Leave\n{LEAVE}"),
        ("a.ipynb", documents.notebook(LEAVE), LEAVE),
        ("a.xlsx", documents.xlsx("Pay", ("who", "day"), ("Ana", "Monday")), f"## Pay\n{TABLE}"),
        ("a.csv", b"who,day\r\nAna,Monday\r\n", TABLE),
        ("A.HTML", f"<script>alert(1)</script><h1>Leave</h1><p>{LEAVE}</p>".encode(), f"# Leave\n\n{LEAVE}"),
        ("a.md", b"# Leave\r\n\r\nyes\r\n", "# Leave\n\nyes"),
        ("a.txt", "Łódź".encode("utf-16"), "Łódź"),
        ("a.txt", codecs.BOM_UTF8 + "Łódź".encode(), "Łódź"),
        ("a.txt", "Größe “x”".encode("cp1252"), "Größe “x”"),
        ("a.csv", "Größe,Straße\n1,2\n".encode("latin-1"), "| Größe | Straße |\n| --- | --- |\n| 1 | 2 |"),
    ],
)  # fmt: skip
def test_each_kind_is_read(name, content, read):
    assert [one.text.strip() for one in read_document(name, content)] == [read]


def test_a_pdf_is_read_page_by_page_and_empty_pages_keep_their_number():
    pages = read_document("a.pdf", documents.pdf("First here.", "", "Third here."))
    assert [(one.page, one.text) for one in pages] == [(1, "First here."), (3, "Third here.")]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.pdf", documents.pdf("x", locked=True), "it is encrypted: save it without a password"),
        ("a.pdf", documents.pdf("", ""), "it holds pictures of pages and no text: let a program for OCR read it"),
        ("a.pdf", documents.pdf("x")[:60], "it is damaged: open it"),
        ("a.pdf", b"", "it is empty"),
        ("a.docx", b"words", "it is damaged: open it"),
        ("a.docx", documents.docx("a", "b")[:-40], "it is damaged: open it"),
        ("a.docx", documents.zipped(words="x"), "it is damaged: open it"),
        ("a.docx", bytes.fromhex("d0cf11e0a1b11ae1"), "it is encrypted: save it without a password"),
        ("a.ipynb", b"{", "it is damaged: open it"),
        ("a.txt", b"\x7fELF\x02\x01\x00", "it is no text"),
        ("a.txt", b"\xff\x01", "it is no text"),
        ("a.md", b"\xff\xfea", "it is no text"),
        ("a.html", b"<p> </p>", "it holds no text"),
    ],
)
def test_what_cannot_be_read_is_told(name, content, told):
    with pytest.raises(ValueError, match=told):
        read_document(name, content)


def test_a_zip_that_unpacks_to_too_much_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(texts, "LARGEST", 3 << 20)
    with pytest.raises(ValueError, match="it unpacks to 4 MB, more than the 3 that are read: split it"):
        read_document("a.docx", documents.zipped(a="x" * (2 << 20), b="x" * (2 << 20)))


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdfium2"), ("a.html", "markitdown")])
def test_without_the_extra_it_is_named(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(QuestreeError, match=r"pip install 'questree\[documents\]'"):
        read_document(name, b"x")
