"""A citation leads to its document: what stands beside it, and the file, which is as it was and in its folder."""

import json
import shutil

import documents
import pytest
from hostile_text import HOSTILE

from questree.common.errors import CorpusError
from questree.retrieval import Passage, build_index, load_index, open_retriever
from questree.retrieval.documents.indexed import IndexedDocuments


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "handbook"
    made.mkdir()
    (made / "handbook.md").write_text(documents.HANDBOOK)
    (made / "leave.pdf").write_bytes(documents.pdf("Amber leave.", "Basin leave.", "Cedar leave."))
    return made


@pytest.fixture
def index(folder, tmp_path):
    return build_index(folder, tmp_path / "index", kind="bm25")


@pytest.mark.parametrize("name", ["{0}", "linked:{0}", "{0}+{1}"])
def test_a_passage_stands_between_its_neighbours_and_its_file_is_given(folder, index, name, tmp_path):
    other = build_index(folder, tmp_path / "other", kind="linked") if "1" in name else None
    retriever = open_retriever(name.format(index, other))
    held = IndexedDocuments([None, retriever])
    basin = next(one for one in retriever("basin leave", k=3) if "Basin" in one.text)
    assert (basin.source, basin.start, basin.end) == ("leave.pdf#page=2", 0, 12)
    assert held.beside(basin) == ("Amber leave.", "Cedar leave.")
    first, last = (next(one for one in retriever(q, k=3) if q in one.text) for q in ("Amber", "Cedar"))
    assert [held.beside(first), held.beside(last)] == [("", "Basin leave."), ("Basin leave.", "")]
    assert held.content(basin) == ("leave.pdf", (folder / "leave.pdf").read_bytes())


def basin_of(index):
    retriever = load_index(index)
    return IndexedDocuments([retriever]), next(one for one in retriever("basin leave", k=3) if "Basin" in one.text)


@pytest.mark.parametrize("how", ["changed", "gone", "folder gone", "link out"])
def test_what_is_gone_changed_or_elsewhere_is_said(folder, index, tmp_path, how):
    held, basin = basin_of(index)
    path = folder / "leave.pdf"
    if how == "changed":
        path.write_bytes(documents.pdf("Other."))
    elif how == "gone":
        path.unlink()
    elif how == "folder gone":
        shutil.rmtree(folder)
    else:
        path.rename(tmp_path / "leave.pdf")
        path.symlink_to(tmp_path / "leave.pdf")
    said = {"changed": "has changed since", "gone": "it is gone", "folder gone": "the folder that was indexed is gone"}
    with pytest.raises(CorpusError, match=f"leave.pdf .*{said.get(how, 'a link out of the folder')}"):
        held.content(basin)


@pytest.mark.parametrize(
    "changed",
    [{"id": "leave.pdf:3"}, {"id": "leave.pdf:0"}, {"id": "leave.pdf:²"}, {"id": f"leave.pdf:{'9' * 5000}"},
     {"id": "../handbook/leave.pdf:2"}, {"id": ":2"}, {"text": HOSTILE}, {"source": "leave.pdf#page=9"}],
)  # fmt: skip
def test_a_passage_that_the_index_does_not_hold_leads_nowhere(index, changed):
    held, basin = basin_of(index)
    other = basin.model_copy(update=changed)
    assert held.beside(other) is None
    with pytest.raises(CorpusError, match="no document that is indexed here"):
        held.content(other)


@pytest.mark.parametrize("hostile", ["../secret.md", "/{}/secret.md", "a/../../secret.md", "x\0.md"])
def test_a_forged_index_opens_nothing_outside_its_folder(folder, index, tmp_path, hostile):
    (tmp_path / "secret.md").write_bytes((folder / "handbook.md").read_bytes())  # of the same hash
    held, _ = basin_of(index)
    name = hostile.format(str(tmp_path).strip("/"))
    _, record, firsts = held._held[0]
    record.documents[name], firsts[name] = record.documents["handbook.md"], 0
    first = load_index(index).passages[0]
    forged = Passage(**first.model_dump() | {"id": f"{name}:1"})
    held._held[0] = ([forged], record, firsts)
    with pytest.raises(CorpusError, match="cannot be opened"):
        held.content(forged)


def test_an_index_of_lines_or_with_a_forged_record_has_no_documents(index, tmp_path, passages):
    lines = load_index(build_index(passages, tmp_path / "lines", kind="bm25"))
    assert IndexedDocuments([lines]).beside(lines.passages[0]) is None
    [record] = index.glob("version-*/documents.json")
    told = json.loads(record.read_text())
    told["documents"]["leave.pdf"]["passages"] = 2
    retriever = load_index(index)
    record.write_text(json.dumps(told))
    assert IndexedDocuments([retriever]).beside(retriever.passages[0]) is None
