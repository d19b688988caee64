"""An index is kept in step with a folder of documents: only what changed is read and encoded."""

import json
import os
import random
import re
import shutil
from collections import defaultdict
from pathlib import Path

import documents
import pytest

from questree.common.errors import CheckpointError, CorpusError, QuestreeError
from questree.retrieval import build_index, load_index
from questree.retrieval.documents import folder as documents_folder
from questree.retrieval.documents.folder import Documents, are_documents
from questree.retrieval.index_builder import source_of
from questree.retrieval.indexes import chunks, known_rows

from ..conftest import WORDS, interrupted, stop_after

SIZE = 16
ENCODING = ["exact", "rerank", "dense"]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", SIZE)
    monkeypatch.setattr(known_rows, "_GROUP", 3)


@pytest.fixture
def checkpoints(tiny_checkpoint, sentence_folder):
    """The checkpoint that a kind of index is built with."""
    return defaultdict(lambda: tiny_checkpoint, dense=sentence_folder, bm25=None, linked=None)


def prose(seed, paragraphs):
    draw = random.Random(seed)
    told = [" ".join(draw.choices(WORDS, k=draw.randint(12, 24))) for _ in range(paragraphs)]
    return "\n\n".join(f"## {draw.choice(WORDS)} {place}\n\n{text}." for place, text in enumerate(told))


@pytest.fixture
def folder(tmp_path):
    """Documents of several kinds."""
    made = tmp_path / "handbook"
    (made / "more").mkdir(parents=True)
    (made / "handbook.md").write_text(documents.HANDBOOK)
    (made / "leave.pdf").write_bytes(documents.pdf("Amber leave.", "Basin leave.", "Cedar leave."))
    for seed, name in enumerate(["a.md", "m.md", "more/z.md"]):
        (made / name).write_text(prose(seed, 14))
    return made


def change(folder: Path) -> None:
    """Add a document, change one in its middle, rename one and remove one."""
    (folder / "b.md").write_text(prose(9, 5))
    text = (folder / "m.md").read_text()
    (folder / "m.md").write_text(text.replace("## ", "## willow\n\nA willow north of the lagoon.\n\n## ", 1))
    (folder / "more" / "z.md").rename(folder / "0.md")
    (folder / "leave.pdf").unlink()


def content(index: Path) -> dict[str, bytes]:
    """Return the files of an index, but for its manifest, which names its version."""
    files = {p.relative_to(index).as_posix(): p.read_bytes() for p in sorted(index.rglob("*")) if p.is_file()}
    return {re.sub(r"^version-\d+/", "", name): said for name, said in files.items() if "questree-index" not in name}


@pytest.mark.parametrize("kind", [*ENCODING, "bm25", "linked"])
def test_an_index_that_follows_its_folder_is_that_of_a_fresh_build(folder, checkpoints, tmp_path, kind, monkeypatch):
    how = {"kind": kind, "checkpoint": checkpoints[kind]}
    out = build_index(folder, tmp_path / "index", **how)
    total = len(load_index(out).passages)
    change(folder)
    encoded, source = stop_after(monkeypatch, -1), Documents(folder)
    build_index(source, out, **how)
    assert tuple(source.changes) == (2, 1, 2, 2)
    assert kind not in ENCODING or 0 < encoded[0] < 0.75 * total
    fresh = build_index(folder, tmp_path / "fresh", **how)
    assert content(out) == content(fresh)
    assert load_index(out).fingerprint == load_index(fresh).fingerprint
    found = load_index(out)("willow north lagoon", k=3)
    assert found == load_index(fresh)("willow north lagoon", k=3)
    assert all(re.fullmatch(r"(0|a|b|m)\.md#[\w-]+", one.source) and one.start < one.end for one in found)
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["version-2"]


def test_only_what_changed_is_read(folder, tmp_path, monkeypatch):
    out = build_index(folder, tmp_path / "index", kind="bm25")
    manifest = (out / "questree-index.json").read_bytes()
    read, genuine = [], documents_folder.read_document
    monkeypatch.setattr(documents_folder, "read_document", lambda name, said: read.append(name) or genuine(name, said))
    build_index(folder, out, kind="bm25")
    assert read == []
    assert (out / "questree-index.json").read_bytes() == manifest
    (folder / "a.md").write_text("words")
    build_index(folder, out, kind="bm25")
    assert read == ["a.md"]


def test_unchanged_passages_are_not_encoded_where_a_document_is_added(folder, checkpoints, tmp_path, monkeypatch):
    out = build_index(folder, tmp_path / "index", kind="exact", checkpoint=checkpoints["exact"])
    (folder / "zz.md").write_text("north")
    encoded = stop_after(monkeypatch, -1)
    build_index(folder, out, kind="exact", checkpoint=checkpoints["exact"])
    assert 1 <= encoded[0] <= SIZE


@pytest.mark.parametrize("kind", ENCODING)
def test_a_kill_at_any_point_leaves_the_old_index_whole(folder, checkpoints, tmp_path, kind):
    how = {"kind": kind, "checkpoint": checkpoints[kind]}
    out, draw = build_index(folder, tmp_path / "index", **how), random.Random(kind)
    before, found = (out / "questree-index.json").read_bytes(), load_index(out)("amber basin", k=5)
    change(folder)
    for _ in range(2):
        with interrupted(draw.randrange(6)):
            build_index(folder, out, **how)
        assert load_index(out)("amber basin", k=5) == found
        assert (out / "questree-index.json").read_bytes() == before
    build_index(folder, out, **how)
    assert content(out) == content(build_index(folder, tmp_path / "fresh", **how))


def test_an_index_of_other_documents_is_not_replaced(folder, tmp_path):
    out = build_index(folder, tmp_path / "index", kind="bm25")
    other = shutil.copytree(folder, tmp_path / "other")
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(other, out, kind="bm25")
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(f"{folder}/*.md", out, kind="bm25")
    build_index(other, out, kind="bm25", overwrite=True)


@pytest.mark.parametrize("passages", [-1, 10**12, 3.5, None])
def test_a_forged_record_of_documents_is_not_followed(folder, tmp_path, passages):
    version = build_index(folder, tmp_path / "index", kind="bm25") / "version-1"
    record = json.loads((version / "documents.json").read_text())
    assert record["root"] == str(folder.resolve())
    record["documents"]["a.md"]["passages"] = passages
    (version / "documents.json").write_text(json.dumps(record))
    source = Documents(folder)
    source.follow(version)
    assert tuple(source.changes) == (5, 0, 0, 0)
    assert len([*source]) > 40


def test_a_damaged_index_gives_nothing_to_the_next(folder, checkpoints, tmp_path):
    out = build_index(folder, tmp_path / "index", kind="exact", checkpoint=checkpoints["exact"])
    change(folder)
    (rows,) = out.glob("version-1/*/000000.npy")
    rows.write_bytes(rows.read_bytes()[:-1] + b"x")
    with pytest.raises(QuestreeError, match="is damaged"):
        build_index(folder, out, kind="exact", checkpoint=checkpoints["exact"])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.pdf", b"%PDF-1.4", "it is damaged"),
        ("x.md", b"", "it is empty"),
        ("größe 日本.docx", b"words", "it is damaged"),
    ],
)
def test_a_document_that_cannot_be_read_is_named_and_the_others_are_indexed(folder, tmp_path, name, content, told):
    (folder / name).write_bytes(content)
    for new in (True, False):  # also where nothing changed
        source = Documents(folder)
        out = build_index(source, tmp_path / "index", kind="bm25")
        assert [(one.file, told in one.problem) for one in source.bad] == [(name, True)]
        assert source.changes.new == (6 if new else 0)
        assert source.told().endswith("; 1 of these left out")
    with pytest.raises(CorpusError, match=rf"{re.escape(name)}: {told}"):
        build_index(Documents(folder, strict=True), tmp_path / "strict", kind="bm25")
    with pytest.raises(CorpusError, match=told):
        build_index(Documents(folder, strict=True), out, kind="bm25")
    (folder / name).unlink()
    build_index(Documents(folder, strict=True), out, kind="bm25")


def test_links_out_of_the_folder_and_other_files_are_not_read(folder, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "secrets").mkdir()
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "outside").symlink_to(tmp_path / "secrets")
    (folder / "inside.md").symlink_to(folder / "a.md")
    os.mkfifo(folder / "pipe.md")
    (folder / "picture.png").write_bytes(b"x")
    (folder / ".hidden.md").write_text("hidden")
    (folder / "~$open.docx").write_text("lock")
    with (folder / "large.txt").open("wb") as file:
        file.truncate(501 << 20)
    source = Documents(folder)
    found = {one.source.partition("#")[0] for one in source}
    assert found == {"handbook.md", "leave.pdf", "a.md", "inside.md", "m.md", "more/z.md"}
    assert {one.file: one.problem.split(":")[0] for one in source.bad} == {
        "large.txt": "it has 501 MB; 500 are read at most",
        "out.md": "it is a link out of the folder",
        "outside": "it is a link out of the folder",
        "pipe.md": "it is no regular file",
    }
    assert source.passed_over == {".png": 1}


def test_names_are_of_any_script_and_two_files_may_say_the_same(tmp_path):
    for name in ("größe.md", "日本.md", "a b#c.md"):
        (tmp_path / name).write_text("The same words.")
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("x")
    source = Documents(tmp_path)
    assert [one.source for one in source] == ["a b%23c.md", "größe.md", "日本.md"]
    assert len({one.id for one in source}) == 3
    assert source.bad == []
    assert source.told().endswith("; not read: 1 with a name that is not UTF-8")
    found = load_index(build_index(tmp_path, tmp_path / "index", kind="bm25")).passages
    assert [one.id for one in found] == ["a b#c.md:1", "größe.md:1", "日本.md:1"]


def test_a_tokenizer_that_cannot_be_loaded_is_no_fault_of_a_document(folder, tiny_checkpoint, tmp_path):
    broken = shutil.copytree(tiny_checkpoint, tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match="has no tokenizer that can be loaded"):
        build_index(folder, tmp_path / "index", kind="exact", checkpoint=broken)


def test_without_a_document_that_can_be_read_there_is_no_index(tmp_path):
    (tmp_path / "docs").mkdir()
    with pytest.raises(CorpusError, match=r"docs holds no document that can be read \(\.pdf, \.md"):
        build_index(tmp_path / "docs", tmp_path / "index")
    (tmp_path / "docs" / "x.pdf").write_bytes(documents.pdf(""))
    with pytest.raises(CorpusError, match=r"docs holds no document that can be read: x\.pdf: it holds pictures"):
        build_index(tmp_path / "docs", tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("name", "content", "documents"),
    [
        ("a.csv", "id,text\n1,x\n", False),
        ("a.csv", "who,pay\nAna,1\n", False),
        ("a.txt", "1\tx\n", False),
        ("a.txt", '{"text": "x"}', False),
        ("a.txt", "Words.", True),
        ("a.ipynb", "{}", True),
        ("a.jsonl", '{"text": "x"}', False),
        ("AA/wiki_00.bz2", "", False),
    ],
)
def test_a_corpus_of_lines_is_recognised_as_before(tmp_path, name, content, documents):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    assert are_documents(tmp_path if "/" in name else tmp_path / name) is documents


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("*.md", ["a.md", "handbook.md", "m.md"]), ("**/z.*", ["more/z.md"]), ("leave.pdf", ["leave.pdf"])],
)
def test_a_pattern_or_one_document_is_a_corpus(folder, pattern, names):
    sources = [one.source.partition("#")[0] for one in source_of(folder / pattern)]
    assert sorted({*sources}) == names
