"""Corpora in their published forms; every file here is made by hand."""

import bz2
import gzip
import io
import json
import logging
import lzma
import random
import tarfile

import pytest

from questree.common.errors import CorpusError
from questree.retrieval import build_index, load_index, read_corpus
from questree.retrieval.corpora import corpus
from questree.retrieval.corpora.corpus import FORMATS


def ids(path, **how) -> list[str]:
    return [passage.id for passage in read_corpus(path, **how)]


def written(path, *lines):
    path.write_bytes("\n".join(lines).encode() + b"\n")
    return path


def article(number: int, *paragraphs: str, **changed) -> str:
    title = f"Article {number}"
    row = {"wikipedia_id": str(number), "wikipedia_title": title, "text": [title + "\n", *paragraphs], "anchors": []}
    return json.dumps({**row, **changed})


# Forms: what is recognised by name and first line, and read

DPR_HEAD = "id\ttext\ttitle"
READ = {
    "JSON, without an id": ("c.jsonl", ['{"id": 7, "title": "A", "text": "1"}', "", '{"text": "2"}'], "7 A 1|3  2"),
    "BEIR": ("c.jsonl", ['{"_id": "M-1", "text": "1"}', '{"id": "a", "_id": "b", "text": "2"}'], "M-1  1|a  2"),
    "byte order mark, CRLF": ("c.jsonl", ['\ufeff{"id": "a", "text": "Öl"}\r'], "a  Öl"),
    "a name that tells nothing": ("c", ['{"id": "a", "text": "x"}'], "a  x"),
    "ColBERT": ("c.tsv", ["0\tone", "1\ttwo"], "0  one|1  two"),
    "ColBERT, not unquoted": ("c.tsv", ['0\t"quoted" here'], '0  "quoted" here'),
    "ColBERT by its tabs": ("c.txt", ["a\tone"], "a  one"),
    "DPR, unquoted": (
        "c.tsv",
        [DPR_HEAD, '1\t"He said ""yes"""\tT', '2\tx\t"The ""B"""'],
        '1 T He said "yes"|2 The "B" x',
    ),
    "a header in another order": ("c.tsv", ["text\tpassage_id\ttitle", "one\t1\tT"], "1 T one"),
    "a quoted header": ("c.tsv", ['"id"\t"text"\t"title"', '"1"\t"Amber."\t"T"'], "1 T Amber."),
    "ids as MIRACL and ColBERT name them": (
        "c.jsonl",
        ['{"docid": "7#1", "text": "1"}', '{"pid": 0, "text": "2"}', '{"passage_id": "p", "doc_id": "d", "text": "3"}'],
        "7#1  1|0  2|p  3",
    ),
    "names in other cases": ("c.jsonl", ['{"Id": "a", "Title": "T", "TEXT": "1"}'], "a T 1"),
    "an id as a float": ("c.jsonl", ['{"id": 7.0, "text": "1"}', '{"id": 7.5, "text": "2"}'], "7  1|7.5  2"),
    "FlashRAG": ("c.jsonl", [json.dumps({"id": "0", "contents": '"Amber"\nA resin.\nOld.'})], "0 Amber A resin.\nOld."),
    "Pyserini": ("c.jsonl", [json.dumps({"id": "0", "contents": 'He\nsaid "no".'})], '0  He\nsaid "no".'),
    "contents that are only quoted": ("c.jsonl", [json.dumps({"id": "0", "contents": '"Amber"\n '})], '0  "Amber"'),
    "a JSON array": ("c.json", ['[{"title": "A", "text": "1"},', '{"title": "B", "text": "2"}]'], "1 A 1|2 B 2"),
    "a JSON array without a name": ("c", ['\ufeff[{"id": 7.0, "contents": "\\"A\\"\\n1"}]'], "7 A 1"),
    "CSV": ("c.csv", ["ID,Title,Text,url", '1,A,"one, and', 'two",x', "2,,three,"], "1 A one, and\ntwo|2  three"),
    "CSV of Excel": ("c.csv", ["\ufefftext;id\r", '"a; ""b""";7\r'], '7  a; "b"'),
    "KILT": (
        "k.json",
        [article(4, "BULLET::::- one\n", "Section::::H.\n", "two\n"), article(5)],
        "4-0 Article 4 one two",
    ),
}


@pytest.mark.parametrize(("name", "lines", "expected"), READ.values(), ids=READ)
def test_forms_are_recognised_and_read(tmp_path, name, lines, expected):
    found = list(read_corpus(written(tmp_path / name, *lines)))
    assert "|".join(f"{p.id} {p.title} {p.text}" for p in found) == expected


URL = "https://host/a?b=c#d"


@pytest.mark.parametrize(
    ("name", "line", "source"),
    [
        ("c.jsonl", json.dumps({"text": "x", "url": URL}), URL),
        ("c.jsonl", json.dumps({"text": "x", "Source": f" {URL} "}), URL),
        ("c.jsonl", json.dumps({"text": "x", "source": "wiki", "url": URL}), URL),
        ("c.jsonl", json.dumps({"text": "x", "source": {"of": "no text"}}), ""),
        ("c.jsonl", json.dumps({"text": "x"}), ""),
        ("c.csv", f"text,url\nx,{URL}", URL),
        ("h.jsonl", json.dumps({"id": "1", "title": "A", "text": ["x"], "charoffset": [], "url": URL}), URL),
    ],
)
def test_a_line_keeps_its_source_and_so_does_the_index(tmp_path, name, line, source):
    file = written(tmp_path / name, line)
    (found,) = read_corpus(file)
    assert (found.source, found.text, found.start) == (source, "x", None)
    (kept,) = load_index(build_index(file, tmp_path / "index", kind="bm25")).passages
    assert kept == found


def test_kilt_articles_are_cut_into_a_hundred_words(tmp_path):
    words = [f"w{n}" for n in range(230)]
    line = article(3, " ".join(words[:90]), "Section::::History.\n", " ".join(words[90:]) + "\n")
    found = list(read_corpus(written(tmp_path / "kilt_knowledgesource.json", line)))
    assert [(p.id, len(p.text.split())) for p in found] == [("3-0", 100), ("3-1", 100), ("3-2", 30)]
    assert " ".join(p.text for p in found).split() == words


def test_a_form_may_be_named_and_an_unknown_one_names_those_there_are(tmp_path):
    file = written(tmp_path / "c.txt", '{"id": "a"}\tb')
    assert ids(file, corpus_format="tsv") == ['{"id": "a"}']
    with pytest.raises(CorpusError, match=", ".join(FORMATS)):
        ids(file, corpus_format="docx")


def parquet(path, **columns):
    from pyarrow import parquet, table

    parquet.write_table(table(columns), path)
    return path


@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_parquet_is_read_row_by_row(tmp_path, name):
    file = parquet(tmp_path / name, ID=[7.0, None], title=["A", None], text=["Öl", "two"], embedded=[[0.5], []])
    assert [(p.id, p.title, p.text) for p in read_corpus(file)] == [("7", "A", "Öl"), ("2", "", "two")]


def test_rows_pass_the_checks_of_lines(tmp_path):
    rows = [("a", "1"), ("a", "2"), ("b", ""), ("", "3")]
    files = [
        written(tmp_path / "c.json", json.dumps([{"id": id, "text": text} for id, text in rows])),
        written(tmp_path / "c.csv", "id,text", *map(",".join, rows)),
        parquet(tmp_path / "c.parquet", id=[id for id, _ in rows], text=[text for _, text in rows]),
    ]
    for file in files:
        with pytest.raises(CorpusError, match=rf"{file.name} \(row by row\), line 2: the id 'a' stands on an earlier"):
            ids(file)
        kept = read_corpus(file, skip_bad=True)
        assert [passage.id for passage in kept][:1] == ["a"]
        assert [line.number for line in kept.bad][:2] == [2, 3]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.json", b'[{"text": "x"},', "c.json cannot be read: .*line 1 column 16"),
        ("c.json", b"[" * 100_000, "c.json cannot be read"),
        ("c.json", b'["x"]', "line 1: Input should be an object"),
        ("c.parquet", b"PAR1 and nothing", "c.parquet cannot be read: Parquet magic bytes not found"),
        ("c.csv", b'id,text\n1,"open', "c.csv cannot be read: unexpected end of data"),
        ("c.csv", b"id,heading,body\n1,A,one\n", "`text`: Field required, it has heading, body"),
        ("c.csv", "id,text\n1,café\n".encode("latin-1"), "c.csv cannot be read: not UTF-8 .*seems to be Latin-1"),
        ("c.json", '[{"text": "é"}]'.encode("latin-1"), "c.json cannot be read: not UTF-8 .*seems to be Latin-1"),
        ("c.jsonl", '{"text": "é"}'.encode("utf-16"), "line 1: not UTF-8 .*be UTF-16; .*iconv -f UTF-16 -t UTF-8"),
        ("c.tsv", "1\tcafé".encode("latin-1"), "line 1: not UTF-8 .*be Latin-1; .*iconv -f ISO-8859-1 -t"),
    ],
)
def test_a_file_that_is_damaged_or_in_another_encoding_is_told(tmp_path, name, content, said):
    (file := tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=said):
        ids(file)


@pytest.mark.parametrize(("row", "told"), [({"docno": "d"}, True), ({}, False), ({"docno": "d", "pid": "p"}, False)])
def test_a_field_that_may_have_been_meant_as_the_id_is_told(tmp_path, caplog, row, told):
    file = written(tmp_path / "c.jsonl", *[json.dumps({**row, "text": "x"})] * 2)
    with caplog.at_level(logging.WARNING):
        ids(file, skip_bad=True)
    said = [one for one in caplog.messages if "no field is read as their id" in one]
    assert ["not read: docno." in one for one in said] == [True] * told


def test_a_long_passage_may_hold_a_quotation_mark(tmp_path):
    path = written(tmp_path / "long.tsv", "id\ttext", '1\t"He said ""yes"" ' + "and no " * 30_000 + '"')
    assert len(next(iter(read_corpus(path))).text) > 200_000


# HotpotQA's archive


def abstract(number: int, *sentences: str, **changed) -> str:
    row = {"id": str(number), "title": f"Article {number}", "text": list(sentences), "charoffset": [[[0, 4]]]}
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


def test_hotpotqa_archive_and_folder_are_the_same_passages(tmp_path, abstracts):
    packed = list(read_corpus(archive(tmp_path / "abstracts.tar.bz2", abstracts)))
    assert [(p.id, p.title, p.text) for p in packed] == [
        ("12", "Article 12", "It is one. It is old."),
        ("13", "Article 13", "Two."),
        ("15", "Article 15", "Four."),  # the one without text is passed over
    ]
    for name, lines in abstracts.items():
        (file := tmp_path / "folder" / name).parent.mkdir(parents=True)
        file.write_bytes(bz2.compress("\n".join(lines).encode() + b"\n"))
    assert list(read_corpus(tmp_path / "folder")) == packed
    assert ids(tmp_path / "folder/enwiki/AA/wiki_00.bz2") == ["12", "13"]


def test_a_bad_abstract_is_named_by_file_and_line(tmp_path, abstracts):
    abstracts["enwiki/AB/wiki_00.bz2"].insert(1, abstract(12, "Again."))
    path = archive(tmp_path / "abstracts.tar.bz2", abstracts)
    with pytest.raises(CorpusError, match=r"abstracts.tar.bz2 \(enwiki/AB/wiki_00.bz2\), line 2: .*earlier line"):
        ids(path)
    kept = read_corpus(path, skip_bad=True)
    assert [passage.id for passage in kept] == ["12", "13", "15"]
    assert [(line.number, "AB/wiki_00" in line.file) for line in kept.bad] == [(2, True)]


def test_an_archive_or_folder_that_cannot_be_read_is_told(tmp_path, abstracts):
    draw = random.Random(1)
    filling = [abstract(n, "".join(draw.choices("abcdefgh ", k=3000))) for n in range(100, 400)]
    path = archive(tmp_path / "abstracts.tar.bz2", {**abstracts, "enwiki/AC/wiki_00.bz2": filling})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    (none := tmp_path / "none.tar.bz2").write_bytes(b"no archive")
    (folder := tmp_path / "folder").mkdir()
    other = archive(tmp_path / "other.tar.bz2", {"letters.txt": ["x"]})
    for place, said in (
        (path, r"abstracts.tar.bz2.*cannot be read"),
        (none, "cannot be read as an archive"),
        (other, "no archive of HotpotQA"),
        (folder, "There is no wiki_00"),
    ):
        with pytest.raises(CorpusError, match=said):
            ids(place)


# Bad lines

GOOD = {
    "c.jsonl": '{"id": "a", "text": "x"}',
    "c.tsv": DPR_HEAD,
    "h.jsonl": abstract(12, "x"),
    "k.json": article(3, "x"),
}
BAD = [
    ("c.jsonl", '{"id": "b", "text": ', "Invalid JSON"),
    ("c.jsonl", "[" * 100_000, "Invalid JSON"),
    ("c.jsonl", '["b"]', "should be an object"),
    ("c.jsonl", '{"id": "b", "title": "B"}', "`text`: Field required"),
    ("c.jsonl", '{"id": "b", "text": "  "}', "`text` is empty"),
    ("c.jsonl", '{"id": "b", "text": 3}', "`text`: Input should be a valid string"),
    ("c.jsonl", '{"id": "b", "title": ["B"], "text": "x"}', "`title`: Input should be a valid string"),
    ("c.jsonl", '{"id": ["b"], "text": "x"}', "`id`: Input should be a valid string"),
    ("c.jsonl", '{"id": "a", "text": "x"}', "'a' stands on an earlier line too"),
    ("c.jsonl", '{"id": "b", "text": "\\ud800"}', "Invalid JSON"),
    ("c.jsonl", b'{"text": "\xff"}', "not UTF-8"),
    ("c.tsv", "3", "lacks the field"),
    ("c.tsv", "3\ta\tb\tc", "4 tab-separated fields"),
    ("c.tsv", '3\t"first line', "does not close"),
    ("h.jsonl", json.dumps({"id": "1", "text": [], "charoffset": []}), "`title`: Field required"),
    ("h.jsonl", abstract(16, text="one text"), "`text`: Input should be a valid array"),
    ("k.json", json.dumps({"wikipedia_id": "9", "text": []}), "`wikipedia_title`: Field required"),
    ("k.json", article(9, "x", wikipedia_title=None), "`wikipedia_title`: Input should be a valid string"),
]


@pytest.mark.parametrize(("name", "line", "problem"), BAD, ids=[f"{name}: {problem}" for name, _, problem in BAD])
def test_a_bad_line_is_named(tmp_path, name, line, problem):
    content = line if isinstance(line, bytes) else line.encode()
    (file := tmp_path / name).write_bytes(GOOD[name].encode() + b"\n" + content + b"\n")
    with pytest.raises(CorpusError, match="line 2") as caught:
        ids(file)
    assert problem in str(caught.value)
    assert str(file) in str(caught.value)


def test_good_lines_are_kept_and_bad_ones_reported(tmp_path, caplog):
    file = written(tmp_path / "c.jsonl", GOOD["c.jsonl"], "nonsense", '{"id": "c"}', '{"id": "d", "text": "y"}')
    kept = read_corpus(file, skip_bad=True)
    with caplog.at_level(logging.WARNING):
        assert [passage.id for passage in kept] == ["a", "d"]
    assert [line.number for line in kept.bad] == [2, 3]
    assert "2 bad lines left out" in caplog.text
    assert "line 3: its `text`: Field required" in caplog.text


def test_a_quoted_field_with_a_line_break_leaves_no_half_of_itself(tmp_path):
    rows = [DPR_HEAD, '1\t"One."\tA', '2\t"Two breaks', 'here."\tB', '3\tA 12" disc.\tC']
    kept = read_corpus(written(tmp_path / "c.tsv", *rows), skip_bad=True)
    assert [passage.id for passage in kept] == ["1", "3"]
    assert [one.number for one in kept.bad] == [3, 4]


@pytest.mark.parametrize("header", ["key,title,text", "id,heading,body", "query-id,corpus-id,score", "Name,City"])
def test_a_header_of_other_columns_is_refused(tmp_path, header):
    seen = header.lower().replace(",", ", ")
    with pytest.raises(CorpusError, match=f"'{seen}' is not understood.*id, text and title"):
        ids(written(tmp_path / "c.tsv", header.replace(",", "\t"), "1\tA title\tone"))


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="cannot be read"):
        ids(tmp_path / "absent.jsonl")
    for lines in ([""], ["bad"]):
        with pytest.raises(CorpusError, match="no passage"):
            ids(written(tmp_path / "c.jsonl", *lines), skip_bad=True)


def test_reading_is_streamed(tmp_path):
    file = written(tmp_path / "c.jsonl", '{"text": "first"}', "a bad line that is never reached")
    assert next(iter(read_corpus(file))).text == "first"


@pytest.mark.parametrize(("good", "bad", "wrong"), [(0, 15, 11), (12, 15, 13), (20, 15, None)])
def test_a_file_of_bad_lines_is_no_corpus(tmp_path, monkeypatch, good, bad, wrong):
    monkeypatch.setattr(corpus, "_BAD_AT_MOST", 10)
    file = written(tmp_path / "c.jsonl", *['{"text": "a"}'] * good, *["x"] * bad)
    if wrong is None:
        assert len(ids(file, skip_bad=True)) == good
    else:
        with pytest.raises(CorpusError, match=f"is no corpus of this format: {wrong} bad lines"):
            ids(file, skip_bad=True)


def test_a_long_id_does_not_fill_a_message(tmp_path):
    with pytest.raises(CorpusError) as refused:
        ids(written(tmp_path / "c.jsonl", *[json.dumps({"id": "i" * 100_000, "text": "a"})] * 2))
    assert len(str(refused.value)) < 1_000


# Packed files

PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKED)
def test_files_may_be_packed(tmp_path, suffix):
    lines = "".join(f'{{"text": "The harbour of town {n} lies at the river {n * 7}."}}\n' for n in range(5_000))
    (file := tmp_path / f"c.jsonl{suffix}").write_bytes(PACKED[suffix](lines.encode()))
    assert len(ids(file)) == 5_000  # also if it repeats itself as text does
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(CorpusError, match=r"c.jsonl.* cannot be read"):
        ids(file)
