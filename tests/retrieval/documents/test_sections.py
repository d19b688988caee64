"""Passages of documents: where they begin and end, what they are called, and how long they are."""

import random
import re

import documents
import pytest
from reliability.hostile_texts import hostile_text

from questree.common.text import neutralise
from questree.retrieval.documents.folder import Documents
from questree.retrieval.documents.sections import WORDS, Room, document_passages
from questree.retrieval.documents.texts import SUFFIXES, ReadText, read_document
from questree.retrieval.index_folder import KINDS


def split(text, room=None, path="docs/hand book.md", marked_up=True, page=None):
    return [*document_passages(path, [ReadText(text, marked_up, page)], room or Room())]


def prose(sentences, seed=0):
    draw = random.Random(seed)
    words = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove"]
    return [f"{' '.join(draw.choices(words, k=draw.randint(5, 25))).capitalize()}." for _ in range(sentences)]


def test_each_section_is_called_by_the_headings_above_it_and_found_by_its_own():
    found = [(one.id, one.title, one.source, one.text) for one in split(documents.HANDBOOK)]
    assert found == [
        ("docs/hand book.md:1", "Handbook", "docs/hand book.md#handbook", "Welcome to all."),
        ("docs/hand book.md:2", "Handbook › Leave", "docs/hand book.md#leave", "Leave is asked for in writing."),
        (
            "docs/hand book.md:3",
            "Handbook › Leave › Parental leave",
            "docs/hand book.md#parental-leave",
            "Parental leave is approved by the head of department. It lasts a year.",
        ),
        ("docs/hand book.md:4", "Handbook › Pay", "docs/hand book.md#pay", "Pay comes on the 25th."),
    ]


@pytest.mark.parametrize(
    ("text", "titles", "sources"),
    [
        ("before\n\n## A\n\none\n\n## A\n\ntwo", ["m", "m › A", "m › A"], ["m.md", "m.md#a", "m.md#a-1"]),
        ("# A\n\none\n\n# B\n\ntwo", ["m › A", "m › B"], ["m.md#a", "m.md#b"]),
        ("A *b* `c`!\n==\n\none", ["A b c!"], ["m.md#a-b-c"]),
        ("# Größe & Straße 1\n\none", ["Größe & Straße 1"], ["m.md#größe--straße-1"]),
        ("```\n# no heading\n```\n", ["m"], ["m.md"]),
        ("---\ntitle: x\n---\n# A\n\none", ["A"], ["m.md#a"]),
        (f"# {'long ' * 40}\n\none", [f"{'long ' * 40}"[:79] + "…"], None),
    ],
)
def test_headings_are_those_of_markdown(text, titles, sources):
    found = split(text, path="m.md")
    assert [one.title for one in found] == titles
    assert sources is None or [one.source for one in found] == sources
    assert all(text[one.start : one.end] == one.text for one in found)


def test_a_page_is_named_by_its_number_and_a_name_is_no_fragment():
    (found,) = split("Some words.", path="a#b?/50%.pdf", marked_up=False, page=4)
    assert (found.title, found.source) == ("50% › page 4", "a%23b%3F/50%25.pdf#page=4")


@pytest.mark.parametrize("marked_up", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_passages_end_with_sentences_and_hold_so_many_words(marked_up, wrapped):
    told = prose(200)
    text = "\n\n".join(" ".join(told[first : first + 20]) for first in range(0, 200, 20))
    if wrapped:
        text = re.sub(r"(.{60,80}) (?=\w)", r"\1\n", text)
    found = split(f"{text}\n", marked_up=marked_up)
    assert all(one.text == text[one.start : one.end] and one.text.endswith(".") for one in found)
    assert " ".join(" ".join(one.text.split()) for one in found) == " ".join(text.split())
    sizes = [len(f"{one.title} | {one.text}".split()) for one in found]
    assert max(sizes) <= WORDS
    assert sum(sizes) / len(sizes) > 0.6 * WORDS


def test_a_long_sentence_is_split_between_words():
    words = [f"word{number}" for number in range(1000)]
    found = split(" ".join(words), marked_up=False)
    assert len(found) > 5
    assert [word for one in found for word in one.text.split()] == words


def test_words_without_spaces_fill_a_passage_too():
    found = split("長い文章です。" * 500, marked_up=False)
    assert len(found) > 3
    assert all(one.text.endswith("。") for one in found)


def test_a_table_is_split_by_rows_below_its_header():
    rows = [f"| person {number} | {number} |" for number in range(100)]
    header = "| who | pay |\n|---|---|\n"
    text = f"# T\n\nBefore.\n\n{header}" + "\n".join(rows) + "\n\nAfter."
    found = split(text, path="m.md")
    tables = [one for one in found if one.text.startswith(header)]
    assert [found[0].text, found[-1].text, len(tables)] == ["Before.", "After.", len(found) - 2]
    assert len(tables) > 3
    assert [row for one in tables for row in one.text.removeprefix(header).split("\n")] == rows
    assert all(one.text == header + text[one.start : one.end] for one in tables)
    assert max(len(one.text.split()) for one in tables) <= WORDS


def test_a_row_that_is_too_long_is_split_as_text():
    text = f"| a | b |\n|---|---|\n| {' '.join(prose(60))} | x |\n| short | y |\n"
    found = split(text)
    assert len(found) > 3
    assert max(len(one.text.split()) for one in found) <= WORDS


@pytest.mark.parametrize(("kind", "most"), [("exact", 40), ("dense", 128), ("bm25", 10**6)])
def test_a_passage_is_as_long_as_the_encoder_reads(kind, most, tiny_checkpoint, sentence_folder, tmp_path):
    (tmp_path / "a.md").write_text(f"# {'Amber ' * 9}\n\n{' '.join(prose(60))}")
    source = Documents(tmp_path)
    checkpoint = {"exact": tiny_checkpoint, "dense": sentence_folder, "bm25": None}[kind]
    source.for_kind(KINDS[kind], checkpoint, None)
    room, found = source.room(), list(source)
    if checkpoint is None:
        assert room.most == WORDS
        return
    sizes = [room.size(one.shown()) for one in found]
    assert most * 0.6 < max(sizes) < most
    assert any(one.text.endswith(".") for one in found)


DOCUMENTS = {
    ".csv": lambda text: f'a,b\n"{text.replace(chr(34), "")}",x\n'.encode(),
    ".html": lambda text: f"<p>{text}</p>".encode(),
    ".ipynb": documents.notebook,
    ".md": str.encode,
    ".pptx": lambda text: documents.slides("title", re.sub("[\0-\x08\x0b-\x1f]", "", text)),
    ".txt": str.encode,
    ".xlsx": lambda text: documents.xlsx("s", ("a",), (re.sub("[\0-\x08\x0b-\x1f]", "", text),)),
}
MARKER = re.compile(r"\[\[\s*##")


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_a_document_cannot_write_a_field_of_a_prompt(suffix):
    draw, read = random.Random(suffix), 0
    for _ in range(60):
        text = hostile_text(draw).encode("utf-8", "ignore").decode().replace("\0", "")
        try:
            texts = read_document(f"a{suffix}", DOCUMENTS[suffix](text))
        except ValueError:
            continue
        for one in document_passages(f"{text.replace('/', ' ')}{suffix}", texts, Room()):
            read += 1
            shown = one.shown()
            assert neutralise(shown) == shown
            assert not MARKER.search(shown)
            assert one.source.count("#") <= 1
            assert "?" not in one.source
    assert read > 20


def test_every_kind_of_document_but_pdf_and_word_meets_hostile_texts():
    assert set(SUFFIXES) - set(DOCUMENTS) == {".pdf", ".docx", ".epub", ".htm", ".markdown", ".text", ".rst"}
