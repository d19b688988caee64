"""Runs as static pages: every link leads somewhere, the lists hold what they say, and no text becomes markup."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from run_files import keep

from questree.evaluation.records import Record
from questree.evaluation.stored_runs import read_records
from questree.lm.episode import EpisodeStep
from questree.pages.shown_runs import ShownRuns
from questree.pages.study import Study
from questree.programs import ReasoningTree
from questree.retrieval import Passage

EVIL = "</pre></p>\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def study(made_by) -> Path:
    """The folder of a comparison of two programs over the first bundled questions, and its capsule."""
    return made_by(
        "compare searchain direct --limit 4 --tracking-uri none --out runs",
        "pack runs --out study.capsule",
        "export study.capsule --out pages",
    )


def pages_of(folder: Path) -> dict[str, str]:
    return {page.name: page.read_text() for page in folder.glob("*.html")}


def test_every_link_leads_to_a_page_or_a_place_in_it(study):
    pages = pages_of(study / "pages")
    assert len(pages) > 10
    for name, page in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', page):
            target, _, place = unquote(link).partition("#")
            if not target.startswith("data:") and place != "closed":
                assert not target or (study / "pages" / target).is_file(), (name, link)
                assert not place or f'id="{place}"' in pages[target or name], (name, link)


def test_a_run_is_told_with_its_task(study):
    assert "4 questions, task mini</span>" in "".join(pages_of(study / "pages").values())


def test_a_page_has_no_script_and_forbids_all(study):
    for page in pages_of(study / "pages").values():
        assert "<script" not in page
        assert not re.search(r"\s(?:on\w+|style)=", page)
        assert "default-src 'none'; style-src 'self' file:;" in page


def test_the_page_that_a_comparison_writes_is_drawn_as_those_of_its_runs_are(study):
    drawn = (
        re.compile("<section>.*?</section>", re.DOTALL).findall(text)
        for text in (
            (study / "runs" / "page.html").read_text(),
            Study(ShownRuns([study / "runs"])).page("index.html") or "",
        )
    )
    [written], [served] = drawn
    assert written == served


def test_two_runs_of_one_method_are_not_called_two(tmp_path):
    for place, program in enumerate(("searchain", "searchain", "react")):
        tree = ReasoningTree(question="Who?")
        tree.grow(None, query=f"Query {place}", answer="a", source="completed")
        record = Record(id="q", question="Who?", gold_answers=("a",), answer="a", scores={"em": 1.0}, tree=tree)
        keep(tmp_path, [record], f"{program}-{place}", program=program)
    study = Study(ShownRuns([tmp_path]))
    assert "One method, twice: they ask nothing in common." in (study.page("question-1.html") or "")
    assert "Two methods: they ask nothing in common." in (study.page("question-1-with-3.html") or "")


def test_the_lists_hold_the_questions_that_they_name(study):
    right = {
        name: {one.id: one.scores["by-style"] == 1 for one in read_records(study / "runs" / name)}
        for name in ("direct", "searchain")
    }
    lost = [id for id, is_right in right["searchain"].items() if is_right and not right["direct"][id]]
    assert lost
    page = (study / "pages" / "lost-2.html").read_text()
    assert "<h1>searchain right, direct not</h1>" in page
    assert len(re.findall(r'<th scope="row">', page)) == len(lost)
    assert len(re.findall(r'<th scope="row">', (study / "pages" / "questions.html").read_text())) == 4


def test_an_answer_shows_its_tree_its_prompts_and_the_sentence_behind_a_mark(study):
    pages = [page for name, page in pages_of(study / "pages").items() if re.fullmatch(r"question-\d-1.html", name)]
    assert all('class="steps"' in page and "PlanChain" in page for page in pages)
    assert all("[[ ## question ## ]]" in page for page in pages)
    assert any("<mark>" in page and 'href="#cited-1"' in page for page in pages)


def test_folders_and_their_capsule_give_the_same_pages(study, questree):
    assert questree("export", str(study / "runs"), "--out", "pages").code == 0
    from_capsule = pages_of(study / "pages")
    for name, page in pages_of(Path("pages")).items():
        assert page.replace("runs", "study") == from_capsule[name].replace("runs", "study")


def test_no_text_becomes_markup(tmp_path):
    passage = Passage(id=EVIL, title=EVIL, text=EVIL)
    tree = ReasoningTree(question=EVIL)
    tree.grow(None, query=EVIL, answer=EVIL, source="corrected", passage=passage, round=1)
    record = Record(
        id=EVIL, question=EVIL, gold_answers=(EVIL,), answer=EVIL, final_content=f"{EVIL} [1].", references=(passage,),
        tree=tree, scores={"em": 0.0},
    )  # fmt: skip
    prompt = {"messages": [["system", EVIL], ["user", EVIL], ["assistant", EVIL], ["user", EVIL]]}
    asked = [
        EpisodeStep(place=(1,), kind="request", name=EVIL, request=prompt, outcome=[{"text": EVIL}]),
        EpisodeStep(place=(2,), kind="search", name=EVIL, request={"query": EVIL}, outcome=[passage.model_dump()]),
    ]
    folder = keep(tmp_path, [record], EVIL, {EVIL: asked}, program=EVIL, task=EVIL, lm={"name": EVIL})
    shown = Study(ShownRuns([folder]))
    pages = {name: shown.page(name) for name in shown.names()}
    assert set(pages) >= {"index.html", "questions.html", "question-1.html", "question-1-1.html"}
    assert all("<script" not in page and "<img" not in page for page in pages.values())
    assert pages["question-1-1.html"].count("&lt;script&gt;") > 10


def test_a_deep_tree_is_drawn(tmp_path):
    tree, node = ReasoningTree(question="?"), None
    for _ in range(1100):  # Python goes 1000 calls deep
        node = tree.grow(node, query="deeper")
    record = Record(id="q", question="?", gold_answers=("a",), answer="a", tree=tree, scores={"em": 0.0})
    study = Study(ShownRuns([keep(tmp_path, [record])]))
    for name in ("question-1.html", "question-1-1.html"):
        page = study.page(name) or ""
        assert page.count('class="step ') == 1100


def test_pages_that_cannot_be_written_are_an_error_that_says_so(study, questree):
    Path("taken").write_text("a file")
    ran = questree("export", str(study / "study.capsule"), "--out", "taken/pages")
    assert ran.code == 2
    assert "error: taken/pages cannot be written (Not a directory), 0 pages are there; make room, or name" in ran.err


def test_the_runs_and_not_a_folder_that_may_be_a_digest_give_the_heading(study, questree, monkeypatch):
    monkeypatch.chdir(study / "runs")
    assert questree("export", ".", "--out", study / "here").code == 0
    assert "<title>searchain, direct · Questree" in (study / "here" / "index.html").read_text()


def test_a_folder_with_something_in_it_is_left_alone(study, questree):
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("Dear all")
    ran = questree("export", str(study / "study.capsule"), "--out", "mine")
    assert ran.code == 2
    assert "mine is no empty folder; name another one" in ran.err
    assert [file.name for file in Path("mine").iterdir()] == ["letter.txt"]
    assert questree("export", "nowhere", "--out", "kept").code == 2
    assert not Path("kept").exists()
