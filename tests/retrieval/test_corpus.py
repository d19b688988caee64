from __future__ import annotations

import logging

import pytest

from questree.common.errors import CorpusError
from questree.retrieval import BadLine, Passage, read_corpus


def written(folder, name, *lines):
    file = folder / name
    file.write_bytes("\n".join(lines).encode() + b"\n")
    return file


def test_json_lines(tmp_path):
    file = written(tmp_path, "c.jsonl", '{"id": 7, "title": "A", "text": "one"}', "", '{"text": "two"}')
    assert list(read_corpus(file)) == [Passage(id="7", title="A", text="one"), Passage(id="3", text="two")]


def test_an_id_is_found_where_beir_has_it(tmp_path):
    file = written(tmp_path, "c.jsonl", '{"_id": "MED-10", "text": "one"}', '{"id": "a", "_id": "b", "text": "two"}')
    assert [passage.id for passage in read_corpus(file)] == ["MED-10", "a"]


def test_byte_order_mark_and_crlf(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_bytes('\ufeff{"id": "a", "text": "Öl"}\r\n'.encode())
    assert list(read_corpus(file)) == [Passage(id="a", text="Öl")]


def test_colbert_tsv(tmp_path):
    assert list(read_corpus(written(tmp_path, "c.tsv", "0\tone", "1\ttwo"))) == [
        Passage(id="0", text="one"),
        Passage(id="1", text="two"),
    ]


def test_dpr_tsv_unquotes(tmp_path):
    file = written(tmp_path, "c.tsv", "id\ttext\ttitle", '1\t"He said ""yes"" twice"\tA title')
    assert list(read_corpus(file)) == [Passage(id="1", title="A title", text='He said "yes" twice')]


@pytest.mark.parametrize(
    ("header", "line"),
    [("docid\ttitle\ttext", "1\tA title\tone"), ("text\tpassage_id\ttitle", "one\t1\tA title")],
)
def test_a_header_of_a_tsv_says_what_stands_where(tmp_path, header, line):
    assert list(read_corpus(written(tmp_path, "c.tsv", header, line))) == [Passage(id="1", title="A title", text="one")]


def test_a_header_of_other_columns_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"'key, title, text' is not understood.*id, text and title"):
        list(read_corpus(written(tmp_path, "c.tsv", "key\ttitle\ttext", "1\tA title\tone")))


def test_a_name_that_tells_nothing_is_sniffed(tmp_path):
    assert [p.id for p in read_corpus(written(tmp_path, "c.txt", "a\tone"))] == ["a"]
    assert [p.id for p in read_corpus(written(tmp_path, "c", '{"id": "a", "text": "x"}'))] == ["a"]


BAD = {
    '{"id": "b", "text": ': "not JSON",
    '["b"]': "a JSON list",
    '{"id": "b", "title": "B"}': "lacks the field `text`",
    '{"id": "b", "text": "  "}': "`text` is empty",
    '{"id": "b", "text": 3}': "`text` is not text",
    '{"id": "b", "title": ["B"], "text": "x"}': "`title` is not text",
    '{"id": ["b"], "text": "x"}': "`id` is neither",
    '{"id": "a", "text": "x"}': "'a' stands on an earlier line too",
    '{"id": "b", "text": "\\ud800"}': "surrogate",
    "[" * 100_000: "not JSON",
}


@pytest.mark.parametrize(("line", "problem"), BAD.items(), ids=BAD.values())
def test_a_bad_line_is_named(tmp_path, line, problem):
    file = written(tmp_path, "c.jsonl", '{"id": "a", "text": "x"}', line, '{"id": "c", "text": "y"}')
    with pytest.raises(CorpusError, match="line 2") as caught:
        list(read_corpus(file))
    assert problem in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("line", ["no tab", "a\tb\tc\td"])
def test_a_bad_tsv_line_is_named(tmp_path, line):
    with pytest.raises(CorpusError, match="line 2"):
        list(read_corpus(written(tmp_path, "c.tsv", "a\tone", line)))


def test_bytes_that_are_no_text_are_named(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_bytes(b'{"text": "\xff"}\n')
    with pytest.raises(CorpusError, match="line 1: not UTF-8"):
        list(read_corpus(file))


def test_good_lines_are_kept_and_bad_ones_reported(tmp_path, caplog):
    file = written(
        tmp_path, "c.jsonl", '{"id": "a", "text": "x"}', "nonsense", '{"id": "c"}', '{"id": "d", "text": "y"}'
    )
    bad: list[BadLine] = []
    with caplog.at_level(logging.WARNING):
        assert [p.id for p in read_corpus(file, skip_bad=True, bad=bad)] == ["a", "d"]
    assert [line.number for line in bad] == [2, 3]
    assert "2 bad lines left out" in caplog.text
    assert "line 3: it lacks the field `text`" in caplog.text


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read_corpus(tmp_path / "absent.jsonl"))
    with pytest.raises(CorpusError, match="no passage"):
        list(read_corpus(written(tmp_path, "c.jsonl", "")))
    with pytest.raises(CorpusError, match="no passage"):
        list(read_corpus(written(tmp_path, "d.jsonl", "bad"), skip_bad=True))


def test_reading_is_streamed(tmp_path):
    file = written(tmp_path, "c.jsonl", '{"text": "first"}', "a bad line that is never reached")
    assert next(read_corpus(file)).text == "first"
