"""Corpora in their published forms; every file here is made by hand."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile

import pytest

from questree.common import packed_files
from questree.common.errors import CorpusError
from questree.retrieval import BadLine, Passage, read_corpus
from questree.retrieval.corpora import corpus, corpus_format
from questree.retrieval.corpora.corpus import FORMATS


def ids(path, **how) -> list[str]:
    return [passage.id for passage in read_corpus(path, **how)]


def abstract(number: int, *sentences: str, **changed) -> str:
    row = {
        "id": str(number),
        "url": f"https://en.wikipedia.org/wiki?curid={number}",
        "title": f"Article {number}",
        "text": list(sentences),
        "charoffset": [[[0, 4]]],
        "text_with_links": list(sentences),
        "charoffset_with_links": [[[0, 4]]],
    }
    return json.dumps({**row, **changed})


@pytest.fixture
def abstracts() -> dict[str, list[str]]:
    return {
        "enwiki/AA/wiki_00.bz2": [abstract(12, "It is one.", " It is old."), abstract(13, "Two.")],
        "enwiki/AB/wiki_00.bz2": [abstract(14), abstract(15, "Four.")],
    }


def archive(path, members: dict[str, list[str]]):
    with tarfile.open(path, "w:bz2") as opened:
        for name, lines in members.items():
            packed = bz2.compress("\n".join(lines).encode() + b"\n")
            info = tarfile.TarInfo(name)
            info.size = len(packed)
            opened.addfile(info, io.BytesIO(packed))
    return path


def unpacked(folder, members: dict[str, list[str]]):
    for name, lines in members.items():
        (file := folder / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bz2.compress("\n".join(lines).encode() + b"\n"))
    return folder


def test_hotpotqa_archive_and_folder_are_the_same_passages(tmp_path, abstracts):
    packed = list(read_corpus(archive(tmp_path / "abstracts.tar.bz2", abstracts)))
    assert [(p.id, p.title, p.text) for p in packed] == [
        ("12", "Article 12", "It is one. It is old."),
        ("13", "Article 13", "Two."),
        ("15", "Article 15", "Four."),  # the one without text is passed over
    ]
    assert list(read_corpus(unpacked(tmp_path / "folder", abstracts))) == packed


def test_one_file_of_the_abstracts_is_recognised(tmp_path, abstracts):
    folder = unpacked(tmp_path, abstracts)
    assert ids(folder / "enwiki/AA/wiki_00.bz2") == ["12", "13"]


BAD_ABSTRACTS = {
    "not JSON": "{",
    "a JSON list": "[]",
    "lacks the field `title`": json.dumps({"id": "1", "text": [], "charoffset": []}),
    "not a list of sentences": abstract(16, text="one text"),
    "`title` is not text": abstract(16, "x", title=7),
    "`id` is neither": abstract(16, "x", id=[1]),
    "stands on an earlier line": abstract(12, "Again."),
}


@pytest.mark.parametrize(("problem", "line"), BAD_ABSTRACTS.items(), ids=BAD_ABSTRACTS)
def test_a_bad_abstract_is_named_by_file_and_line(tmp_path, abstracts, problem, line):
    abstracts["enwiki/AB/wiki_00.bz2"].insert(1, line)
    path = archive(tmp_path / "abstracts.tar.bz2", abstracts)
    with pytest.raises(CorpusError, match=r"abstracts.tar.bz2 \(enwiki/AB/wiki_00.bz2\), line 2: .*") as caught:
        ids(path)
    assert problem in str(caught.value)
    bad: list[BadLine] = []
    assert ids(path, skip_bad=True, bad=bad) == ["12", "13", "15"]
    assert (bad[0].number, len(bad)) == (2, 1)
    assert "AB/wiki_00" in bad[0].file


def test_a_cut_archive_is_told(tmp_path, abstracts):
    draw = random.Random(1)
    filling = [abstract(n, "".join(draw.choices("abcdefgh ", k=3000))) for n in range(100, 400)]
    path = archive(tmp_path / "abstracts.tar.bz2", {**abstracts, "enwiki/AC/wiki_00.bz2": filling})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(CorpusError, match=r"abstracts.tar.bz2.*cannot be read"):
        ids(path)
    path.write_bytes(b"no archive")
    with pytest.raises(CorpusError, match="cannot be read as an archive"):
        ids(path)


def test_an_archive_or_folder_of_something_else_is_told(tmp_path):
    with pytest.raises(CorpusError, match="no archive of HotpotQA"):
        ids(archive(tmp_path / "other.tar.bz2", {"letters.txt": ["x"]}))
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorpusError, match="There is no wiki_00"):
        ids(tmp_path / "folder")


DPR = 'id\ttext\ttitle\n1\t"He said ""yes"" twice"\tA title\n2\tplain text\t"The ""B"""\n'


def test_dpr_passages(tmp_path):
    (file := tmp_path / "psgs_w100.tsv").write_text(DPR)
    (packed := tmp_path / "psgs_w100.tsv.gz").write_bytes(gzip.compress(DPR.encode()))
    found = list(read_corpus(file))
    assert [(p.id, p.text, p.title) for p in found] == [
        ("1", 'He said "yes" twice', "A title"),
        ("2", "plain text", 'The "B"'),
    ]
    assert list(read_corpus(packed)) == found


def test_dpr_passages_without_their_header_when_the_form_is_named(tmp_path):
    (file := tmp_path / "c.tsv").write_text('1\t"He said ""yes"""\tA title\n')
    assert next(read_corpus(file)).text == '"He said ""yes"""'
    assert next(read_corpus(file, corpus_format="dpr-tsv")).text == 'He said "yes"'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("3\n", "lacks the field"),
        ("3\ta\tb\tc\n", "4 tab-separated fields"),
        ('3\t"first line\nsecond line"\tA title\n', "does not close"),
    ],
)
def test_a_bad_dpr_line_is_named(tmp_path, line, problem):
    (file := tmp_path / "psgs_w100.tsv.gz").write_bytes(gzip.compress((DPR + line).encode()))
    with pytest.raises(CorpusError, match=r"psgs_w100.tsv.gz, line 4") as caught:
        ids(file)
    assert problem in str(caught.value)


def test_a_header_may_be_quoted_as_all_else(tmp_path):
    path = tmp_path / "quoted.tsv"
    path.write_text('"id"\t"text"\t"title"\n"1"\t"Amber is old."\t"Amber"\n')
    assert list(read_corpus(path)) == [Passage(id="1", title="Amber", text="Amber is old.")]


def test_a_long_passage_may_hold_a_quotation_mark(tmp_path):
    path = tmp_path / "long.tsv"
    path.write_text('id\ttext\n1\t"He said ""yes"" ' + "and no " * 30_000 + '"\n')
    assert len(next(read_corpus(path)).text) > 200_000


def test_colbert_passages_are_not_unquoted(tmp_path):
    (file := tmp_path / "collection.tsv").write_text('0\t"quoted" from here\n1\tnext\n')
    assert [p.text for p in read_corpus(file)] == ['"quoted" from here', "next"]


def article(number: int, *paragraphs: str, **changed) -> str:
    title = f"Article {number}"
    row = {"wikipedia_id": str(number), "wikipedia_title": title, "text": [title + "\n", *paragraphs], "anchors": []}
    return json.dumps({**row, **changed})


def test_kilt_articles_are_cut_into_a_hundred_words(tmp_path):
    words = [f"w{n}" for n in range(230)]
    lines = [
        article(3, " ".join(words[:90]), "Section::::History.\n", " ".join(words[90:]) + "\n"),
        article(4, "BULLET::::- first\n", "BULLET::::- second\n"),
        article(5),
    ]
    (file := tmp_path / "kilt_knowledgesource.json").write_text("\n".join(lines) + "\n")
    found = list(read_corpus(file))
    assert [p.id for p in found] == ["3-0", "3-1", "3-2", "4-0"]
    assert [len(p.text.split()) for p in found] == [100, 100, 30, 2]
    assert " ".join(p.text for p in found[:3]).split() == words
    assert (found[3].text, found[3].title) == ("first second", "Article 4")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (json.dumps({"wikipedia_id": "9", "text": []}), "lacks the field `wikipedia_title`"),
        (article(9, text="one text"), "not a list of paragraphs"),
        (article(3, "again"), "stands on an earlier line"),
        (article(9, "x", wikipedia_title=None), "`title` is not text"),
    ],
)
def test_a_bad_article_is_named(tmp_path, line, problem):
    (file := tmp_path / "kilt.json").write_text("\n".join([article(3, "a b c"), line]))
    with pytest.raises(CorpusError, match=r"kilt.json, line 2") as caught:
        ids(file)
    assert problem in str(caught.value)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_json_lines_may_be_packed(tmp_path, suffix, pack):
    (file := tmp_path / f"c.jsonl{suffix}").write_bytes(pack(b'{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'))
    assert ids(file) == ["a", "b"]
    cut = file.read_bytes()
    file.write_bytes(cut[: len(cut) - 5])
    with pytest.raises(CorpusError, match=r"c.jsonl.* cannot be read"):
        ids(file)


def test_a_form_may_be_forced_and_an_unknown_one_names_those_there_are(tmp_path):
    (file := tmp_path / "c.txt").write_text('{"id": "a"}\tb\n')
    assert ids(file, corpus_format="colbert-tsv") == ['{"id": "a"}']
    with pytest.raises(CorpusError, match=", ".join(FORMATS)):
        ids(file, corpus_format="parquet")


def test_an_endless_line_is_bad_and_passed_over(tmp_path, monkeypatch):
    for module in (corpus, corpus_format):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 20)
    (file := tmp_path / "c.jsonl").write_bytes(b'{"text": "a"}\n' + b"x" * (5 << 20) + b'\n{"text": "b"}\n')
    with pytest.raises(CorpusError, match="line 2: longer than 1 MiB"):
        ids(file)
    assert ids(file, skip_bad=True) == ["1", "3"]


def test_a_quoted_field_with_a_line_break_leaves_no_half_of_itself(tmp_path):
    rows = ["id\ttext\ttitle", '1\t"One."\tA', '2\t"Two breaks', 'here."\tB', '3\tA 12" disc.\tC']
    (file := tmp_path / "c.tsv").write_text("\n".join(rows) + "\n")
    bad: list[BadLine] = []
    assert ids(file, skip_bad=True, bad=bad) == ["1", "3"]
    assert [one.number for one in bad] == [3, 4]


# Files that unpack to more than text does

OPENERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
BOMBS = {
    "blank lines": b"\n",
    "passages": b'{"text": "a"}\n',
    "bad lines": b"x\n",
    "one line": b"x",
}


@pytest.mark.parametrize("suffix", OPENERS)
@pytest.mark.parametrize("content", BOMBS)
def test_a_few_bytes_that_unpack_to_much_are_refused(tmp_path, monkeypatch, suffix, content):
    monkeypatch.setattr(packed_files, "_LEAST", 1 << 12)
    file = tmp_path / f"c.jsonl{suffix}"
    file.write_bytes(OPENERS[suffix](BOMBS[content] * (2_000_000 // len(BOMBS[content]))))
    refusal = r"(is no corpus|cannot be read: it unpacks to more .* unpack it yourself)"
    with pytest.raises(CorpusError, match=rf"{file} .*{refusal}"):
        list(read_corpus(file, skip_bad=True))


def test_an_archive_unpacks_to_a_bounded_size_with_all_its_members(tmp_path, monkeypatch, abstracts):
    monkeypatch.setattr(packed_files, "_LEAST", 1 << 12)
    blank = {f"enwiki/AA/wiki_{n:02}.bz2": ["\n" * 60_000] for n in range(3)}
    with pytest.raises(CorpusError, match="unpacks to more than"):
        ids(archive(tmp_path / "blank.tar.bz2", blank))
    with tarfile.open(tmp_path / "members.tar.bz2", "w:bz2") as opened:
        for _ in range(3_000):
            opened.addfile(tarfile.TarInfo("other"))
    with pytest.raises(CorpusError, match="unpacks to more than"):
        ids(tmp_path / "members.tar.bz2")


def test_text_that_repeats_itself_as_text_does_is_read(tmp_path):
    lines = "".join(f'{{"text": "The harbour of town {n} lies at the river {n * 7}."}}\n' for n in range(5_000))
    for suffix, packed in OPENERS.items():
        (file := tmp_path / f"c.jsonl{suffix}").write_bytes(packed(lines.encode()))
        assert len(ids(file)) == 5_000


def test_a_file_of_bad_lines_is_no_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_BAD_AT_MOST", 10)
    good, bad = ['{"text": "a"}'] * 20, ["x"] * 15
    for lines, wrong in ((bad, 11), (good + bad, None), (good[:12] + bad, 13)):
        (file := tmp_path / "c.jsonl").write_text("\n".join(lines) + "\n")
        if wrong is None:
            assert len(ids(file, skip_bad=True)) == 20
        else:
            with pytest.raises(CorpusError, match=f"is no corpus of this format: {wrong} bad lines"):
                ids(file, skip_bad=True)


def test_a_long_id_does_not_fill_a_message(tmp_path):
    line = json.dumps({"id": "i" * 100_000, "text": "a"})
    (file := tmp_path / "c.jsonl").write_text(f"{line}\n{line}\n")
    with pytest.raises(CorpusError) as refused:
        ids(file)
    assert len(str(refused.value)) < 1_000
