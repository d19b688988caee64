"""questree index of documents, and questree search in them."""

import json

import documents
import pytest


@pytest.fixture
def handbook(workplace):
    folder = workplace / "handbook"
    folder.mkdir()
    (folder / "handbook.md").write_text(documents.HANDBOOK)
    (folder / "leave.pdf").write_bytes(documents.pdf("Ask early.", "Mara Holm leads Research. She came in 2011."))
    (folder / "broken.docx").write_bytes(b"words")
    (folder / "logo.png").write_bytes(b"x")
    return folder


INDEX = "index handbook --out ix --kind bm25"


def test_a_folder_is_indexed_and_followed(questree, handbook):
    first = questree(INDEX).done()
    assert "ix: 6 passages, bm25" in first.out
    assert first.out.splitlines()[-1] == (
        "documents: 3 new, 0 changed, 0 gone, 0 as before; 1 of these left out; not read: 1 .png"
    )
    assert first.err.splitlines()[-1].startswith("left out broken.docx: it is damaged: open it")
    (handbook / "teams.txt").write_text("Research has five people.")
    (handbook / "leave.pdf").unlink()
    (handbook / "handbook.md").write_text("Nothing.")
    told = "1 new, 1 changed, 1 gone, 1 as before"
    assert questree(INDEX, "--dry-run").done().out.strip() == f"{told}; nothing was done"
    assert "handbook.md#leave" in questree("search leave --retriever ix").done().out
    assert f"documents: {told}; 1 of these left out" in questree(INDEX).done().out
    again = questree(INDEX).done()
    assert "ix is there already: 2 passages" in again.out
    assert "documents: 0 new, 0 changed, 0 gone, 3 as before; 1 of these left out" in again.out
    assert "left out broken.docx" in again.err
    assert "broken.docx: it is damaged" in questree(INDEX, "--strict").refused()


def test_links_follow_as_well(questree, handbook):
    questree(INDEX, "--links").done()
    (handbook / "teams.txt").write_text("Research has five people. Mara Holm leads it.")
    assert "ix.links: its links" in questree(INDEX).done().out
    assert "teams" in questree("search 'Who leads Research?' --retriever linked:ix").done().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("index handbook --out ix --add", "go into the folder that is indexed: leave --add out"),
        ("index a.jsonl --out ix --kind bm25 --dry-run", "--dry-run and --strict are of documents"),
        ("index a.jsonl --out ix --kind bm25 --strict", "--dry-run and --strict are of documents"),
        ("index handbook --engine qdrant:q/c --dry-run", "name --out"),
        ("index nothing/*.md --out ix2", "holds no document that can be read"),
        ("search leave", "name what is searched: --retriever INDEX"),
    ],
)
def test_what_does_not_go_together_is_refused(questree, handbook, workplace, words, told):
    (workplace / "a.jsonl").write_text('{"text": "x"}\n')
    questree(INDEX).done()
    assert told in questree(words).refused()


def test_a_search_tells_where_a_passage_stands_and_what_matches(questree, handbook):
    questree(INDEX).done()
    lines = questree("search 'Who leads Research?' --retriever ix").done().out.splitlines()
    assert lines[0].startswith("1. leave › page 2 (leave.pdf#page=2), ")
    assert lines[1] == "   Mara Holm leads Research."
    found = json.loads(questree("search 'parental leave' --retriever ix --k 2 --json").done().out)
    assert len(found) == 2
    best = found[0]
    assert best.pop("score") > found[1]["score"]
    text = "Parental leave is approved by the head of department. It lasts a year."
    start = documents.HANDBOOK.index("Parental leave is")
    assert best == {
        "id": "handbook.md:3",
        "title": "Handbook › Leave › Parental leave",
        "text": text,
        "linked_from": "",
        "source": "handbook.md#parental-leave",
        "start": start,
        "end": start + len(text),
        "sentence": "Parental leave is approved by the head of department.",
    }
    assert questree("search xyzzy --retriever ix").done().out.strip() == "No passage holds a word of the query."
