"""A citation of an indexed document: on the page it stands between its neighbours, and leads to the file."""

from datetime import datetime, timezone
from types import SimpleNamespace

import documents
import pytest
from hostile_text import HOSTILE

from questree.evaluation.traces import _document
from questree.pages.asked_question import AskedQuestion
from questree.programs import ReasoningTree, build
from questree.retrieval import Passage, build_index, load_index
from questree.service.chat_api import citations_of
from questree.service.mcp_server import mcp_server


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "handbook"
    made.mkdir()
    (made / "leave.pdf").write_bytes(
        documents.pdf("Amber leave.", "Basin leave is approved. It lasts.", "Cedar leave.")
    )
    (made / "evil <img src=x>.html").write_text("<h1>Evil heading</h1><p>Dune leave.</p><script>alert(1)</script>")
    return made


@pytest.fixture
def retriever(folder, tmp_path):
    return load_index(build_index(folder, tmp_path / "index", kind="bm25"))


def asked_of(*references, text="Basin leave is approved [1]."):
    about = {"id": "x", "program": "searchain", "answer_style": "short", "asked_at": datetime.now(timezone.utc)}
    tree = ReasoningTree(question="Who approves it?")
    return AskedQuestion(**about, tree=tree, state="answered", answer="x", final_content=text, references=references)


@pytest.fixture
def shown(make_service, visit, retriever):
    """Give a client of a service that has answered with these references."""

    def show(*references, **how):
        service = make_service()
        service.programs["searchain"] = build("searchain", {}, retriever=retriever)
        service.__init__(service.programs, service.kept, service.limits, service._lm)
        service.kept.keep(asked_of(*references, **how))
        return visit(service)

    return show


def found(retriever, word):
    return next(one for one in retriever(word, k=4) if word in one.text)


def test_the_page_shows_it_between_its_neighbours_and_a_pdf_opens_at_its_page(shown, retriever, folder):
    client = shown(found(retriever, "Basin"))
    page = client.get("/questions/x").text
    before, mark, after = (
        page.index(told) for told in ("Amber leave.", "<mark>Basin leave is approved.", "Cedar leave.")
    )
    assert before < mark < after
    assert '<a href="/questions/x/sources/1#page=2">leave.pdf, page 2</a>' in page
    given = client.get("/questions/x/sources/1")
    assert given.content == (folder / "leave.pdf").read_bytes()
    assert given.headers["content-type"] == "application/pdf"
    assert given.headers["content-disposition"].startswith("inline")
    assert "script" not in given.headers["content-security-policy"]


def test_what_may_hold_scripts_is_kept_and_not_shown(shown, retriever):
    client = shown(found(retriever, "Dune"))
    page = client.get("/questions/x").text
    assert "<img" not in page
    assert "evil &lt;img src=x&gt;.html › Evil heading" in page
    given = client.get("/questions/x/sources/1")
    assert given.headers["content-type"] == "application/octet-stream"
    assert given.headers["content-disposition"] == "attachment; filename*=UTF-8''evil%20%3Cimg%20src%3Dx%3E.html"
    assert given.headers["x-content-type-options"] == "nosniff"


def test_what_changed_or_is_no_document_is_said(shown, retriever, folder):
    client = shown(found(retriever, "Basin"), Passage(id="../leave.pdf:1", text="x", source="../leave.pdf"))
    (folder / "leave.pdf").write_bytes(b"%PDF-other")
    page = client.get("/questions/x/sources/1", headers={"accept": "text/html"})
    assert (page.status_code, "has changed since it was indexed" in page.text) == (404, True)
    for number, said in ((2, "no document"), (3, "no such reference"), (0, "no such reference")):
        refused = client.get(f"/questions/x/sources/{number}")
        assert (refused.status_code, said in refused.text) == (404, True)
    assert client.get("/questions/x/sources/..%2F..%2Fleave.pdf").status_code in (400, 404, 422)


@pytest.mark.parametrize("source", ["javascript:alert(1)", f"{HOSTILE}.md#{HOSTILE}", "https://a.example/x?y=1#z"])
def test_only_an_address_of_the_web_opens_itself(shown, source):
    page = shown(Passage(id="p", title="T", text="Basin leave is approved.", source=source)).get("/questions/x").text
    assert ('<a href="https://a.example/x?y=1#z">' in page) is source.startswith("https")
    assert not any(told in page for told in ('href="javascript', "<script>document", "<img"))


def test_apis_tell_where_a_passage_stands(retriever):
    basin, web = found(retriever, "Basin"), Passage(id="w", title="W", text="Basin leave.", source="https://a.example/")
    asked = asked_of(basin, web, text="Basin leave is approved [1]. Basin leave [2].")
    first, second = (one["url_citation"] for one in citations_of(asked, SimpleNamespace(base_url="http://here/")))
    assert (first["source"], first["start"], first["end"]) == ("leave.pdf#page=2", basin.start, basin.end)
    assert first["url"] == "http://here/questions/x#cited-1"
    assert (second["source"], second["url"]) == ("https://a.example/",) * 2
    assert [one.source for one in asked.citations()] == [basin.source, web.source]
    assert AskedQuestion.model_validate_json(asked.model_dump_json()).references == (basin, web)
    where = _document(basin)["metadata"]
    assert (where["source"], where["start"], where["end"]) == (basin.source, basin.start, basin.end)
    assert "source" not in _document(Passage(id="p", text="x"))["metadata"]


async def test_a_client_of_mcp_is_told_as_well(make_service, retriever):
    mcp = pytest.importorskip("mcp", reason="needs questree[mcp]")
    async with mcp.Client(mcp_server(make_service(), retriever)) as client:
        [one, *_] = (await client.call_tool("search", {"query": "Basin", "k": 1})).structured_content["result"]
        assert (one["source"], one["start"]) == ("leave.pdf#page=2", 0)
        assert "leave.pdf#page=2" in (await client.read_resource(one["uri"])).contents[0].text
