"""Runs at a server: the same pages as in a folder, one at a time, and nothing else of the disk."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Barrier, BrokenBarrierError, Event

import pytest
from run_files import keep

from questree.common.errors import QuestreeError
from questree.evaluation import Evaluation
from questree.evaluation import tracked_runs as tracked
from questree.evaluation.records import Record
from questree.evaluation.tables import SELF_WRITTEN
from questree.evaluation.tracking import Tracking
from questree.pages.shown_runs import ShownRuns
from questree.pages.study import Study
from questree.programs import ReasoningTree
from questree.service import run_pages


@pytest.fixture(scope="module")
def runs(made_by):
    """A folder of two runs over the same questions."""
    return made_by("compare searchain direct --limit 4 --tracking-uri none --out compared") / "compared"


def test_every_page_is_there_and_nothing_else(make_service, visit, runs):
    client = visit(make_service(), runs=[runs])
    assert "compared" in client.get("/runs").text
    study = Study(ShownRuns([runs]), root="/")
    for name in study.names():
        assert client.get(f"/runs/1/{name}").text == study.page(name)
    for path in ("1/nowhere.html", "0/index.html", "1/runs.db", "1/..%2f..%2findex.html", "2", "1.9", "mlflow"):
        assert client.get(f"/runs/{path}").status_code == 404
    assert client.get("/runs/1").text == study.page("index.html")


def test_runs_of_one_name_are_told_apart_by_their_folders(make_service, visit, tmp_path):
    """As those of two compilations are: each has a ``before`` and an ``after``."""
    for folder in ("first", "second"):
        for stage in ("before", "after"):
            answer = Record(
                id="q", question="Who?", gold_answers=("a",), answer=f"{folder} {stage}", scores={"em": 1.0}
            )
            keep(tmp_path / folder, [answer], stage, program="searchain")
    client = visit(make_service(), runs=[tmp_path])
    listed = client.get("/runs").text
    keys = re.findall(r'name="run" value="([\d.]+)" aria-label="Compare (\w+), \d"', listed)
    assert sorted(name for _, name in keys) == ["after", "after", "before", "before"]
    assert len({key for key, _ in keys}) == 4
    assert (listed.count("part of first"), listed.count("part of second")) == (2, 2)
    names = {f"{folder}/{stage}" for folder in ("first", "second") for stage in ("before", "after")}
    for pages in ("/runs/1", f"/runs/{'+'.join(key for key, _ in keys)}"):
        assert {*re.findall(r"<summary><b>([\w/]+)</b>", client.get(f"{pages}/index.html").text)} == names
    alone = [client.get(f"/runs/{key}/questions.html").text for key, _ in keys]
    assert len({re.findall("(?:first|second) (?:before|after)", page)[0] for page in alone}) == 4


def test_runs_are_read_once_for_visitors_who_come_together(make_service, visit, runs, monkeypatch):
    reads, all_here = [], Barrier(4)

    def slowly(sources):
        reads.append(sources)
        with suppress(BrokenBarrierError):
            all_here.wait(0.5)  # another reader would come meanwhile
        return ShownRuns(sources)

    monkeypatch.setattr(run_pages, "ShownRuns", slowly)
    client = visit(make_service(), runs=[runs])
    with ThreadPoolExecutor(4) as visitors:
        pages = list(visitors.map(client.get, ["/runs/1/index.html"] * 4))
    assert {page.status_code for page in pages} == {200}
    assert len(reads) == 1


def test_a_folder_without_runs_says_so(make_service, visit, tmp_path):
    client = visit(make_service(), runs=[tmp_path])
    refused = client.get("/runs/1/index.html")
    assert refused.status_code == 404
    said = refused.json()["error"]["message"]
    assert str(tmp_path) in said
    assert said.endswith(".")
    assert ".." not in client.get("/runs/1/index.html", headers={"accept": "text/html"}).text


TRACE = "experiments/1/traces/tr-0123abcd"


def test_an_answer_leads_to_its_trace_in_mlflow():
    ours, links = study_of({"q": "right"}), study_of({"q": "right"}, mlflow="http://127.0.0.1:5000")
    for name in ("question-1.html", "question-1-1.html"):
        assert "<code>tr-0123abcd</code>; <code>questree ui</code> shows it" in (ours.page(name) or "")
        assert f'href="http://127.0.0.1:5000/#/{TRACE}"' in (links.page(name) or "")


@pytest.mark.parametrize("trace", ["//elsewhere.example", "experiments/1/traces/x?y", "javascript:alert(1)"])
def test_a_trace_elsewhere_is_none(trace):
    with pytest.raises(ValueError, match="trace"):
        Record(id="q", question="q", trace=trace)


def test_a_record_whose_trace_is_in_unity_catalog_can_be_read():
    kept = Record(id="q", question="q", trace="experiments/1/traces/trace:/main.qa/0123abcd").model_dump_json()
    assert Record.model_validate_json(kept).trace.endswith("0123abcd")


@pytest.fixture
def runs_page(make_service, visit):
    """Give the page of an MLflow store's runs."""
    return lambda tracking, mlflow="": visit(make_service(), tracking=tracking, mlflow=mlflow).get("/runs").text


def test_tracked_runs_are_listed_and_none_of_them_is_markup(runs_page, tmp_path, tracking_store):
    tracking = Tracking(uri=tracking_store(tmp_path))
    assert "No run is here yet." in runs_page(tracking)
    with tracking.run("<img src=x>", {"task": "<b>", "lm": {"name": "theirs"}}, simulated=True) as run:
        run.figures({"score": 0.25})
        run.candidate(0, {"score": 1.0}, {"plan": {"demos": []}})
    page = runs_page(tracking, "http://127.0.0.1:5000")
    assert f'href="http://127.0.0.1:5000/#/experiments/{run.experiment}/runs/{run.id}"' in page
    assert f'href="/runs/{run.id}/index.html">&lt;img src=x&gt;</a>' in page
    assert all(told in page for told in ("&lt;b&gt;", "0.250", "simulated"))
    assert page.count('<th scope="row">') == 1
    assert page.count('type="checkbox" name="run"') == 1
    assert "127.0.0.1:5000" not in runs_page(tracking)


def test_a_tracked_run_without_questions_shows_what_it_has_and_leads_to_mlflow(
    make_service, visit, tmp_path, tracking_store
):
    tracking = Tracking(uri=tracking_store(tmp_path))
    with tracking.run("<img src=x>", {"task": "<b>"}, simulated=True) as run:
        run.figures({"score": 0.25})
    with replace(tracking, experiment="another").run("not ours", {}) as foreign:
        pass
    client = visit(make_service(), tracking=tracking, mlflow="http://127.0.0.1:5000")
    page = client.get(f"/runs/{run.id}/index.html").text
    assert "This run holds no questions to look at" in page
    assert f'href="http://127.0.0.1:5000/#/experiments/{run.experiment}/runs/{run.id}"' in page
    assert all(one in page for one in ("&lt;img src=x&gt;", "&lt;b&gt;", "0.25", "The LM is simulated"))
    for absent in (f"{run.id}/questions.html", f"{foreign.id}/index.html", f"{'0' * 32}/index.html"):
        assert client.get(f"/runs/{absent}").status_code == 404


@pytest.fixture(scope="module")
def tracked_comparison(tmp_path_factory, tracking_store, made_by):
    """A comparison in a folder, and where the same is tracked."""
    tracking = Tracking(uri=tracking_store(tmp_path_factory.mktemp("tracked")))
    made = made_by(f"compare searchain direct --limit 2 --tracking-uri {tracking.uri} --out runs")
    return made / "runs", tracking


def test_a_tracked_run_has_the_pages_of_a_folder_and_leads_to_its_traces(make_service, visit, tracked_comparison):
    folder, tracking = tracked_comparison
    direct, _, both = tracked.tracked_runs(tracking)
    assert direct.part_of == both.name
    client = visit(make_service(), runs=[folder], tracking=tracking, mlflow="http://127.0.0.1:5000")
    ours, theirs = f"/runs/{both.id}", "/runs/1"
    listed = client.get(f"{ours}/questions.html").text
    assert set(re.findall(r'href="(question-\d+\.html)"', listed)) == {"question-1.html", "question-2.html"}

    def trees(run: str) -> list[str]:
        texts = [client.get(f"{run}/{page}").text for page in ("question-1-1.html", "question-2-1.html")]
        return [text.partition("<h2>How it got there</h2>")[2].partition("<h2>Details")[0] for text in texts]

    shown = trees(ours)
    assert shown == trees(theirs)
    assert shown[0] != shown[1]
    assert "<dt>lm.simulated</dt><dd>True</dd>" in client.get(f"/runs/{direct.id}/index.html").text
    answer = client.get(f"/runs/{direct.id}/question-1-1.html").text
    assert 'href="http://127.0.0.1:5000/#/experiments/1/traces/' in answer
    assert "its trace in MLflow holds them" in answer


@pytest.mark.parametrize("own", [True, False])
def test_the_list_of_runs_says_whose_questions_were_its_lms_own(make_service, visit, tmp_path, tracking_store, own):
    """Those in a folder, and those that are tracked, with their figures or with their pages."""
    answer = Record(id="q", question="Who?", gold_answers=("a",), answer="a", scores={"em": 1.0}, self_written=own)
    keep(tmp_path / "evaluated", [answer], program="direct")
    tracking = Tracking(uri=tracking_store(tmp_path))
    with tracking.run("tracked", {}) as run:
        run.evaluation(Evaluation("em", (answer,)))
    client = visit(make_service(), runs=[tmp_path / "evaluated"], tracking=tracking)
    listed = client.get("/runs").text
    assert listed.count(f'title="{SELF_WRITTEN}"') == 2 * own
    [one] = tracked.tracked_runs(tracking)
    assert one.self_written is own
    assert (SELF_WRITTEN[1:] in client.get(f"/runs/{one.id}/index.html").text) is own


def test_candidates_push_no_run_off_the_list(tmp_path, tracking_store, monkeypatch):
    monkeypatch.setattr(tracked, "MOST", 2)
    tracking = Tracking(uri=tracking_store(tmp_path))
    for name in ("first", "second", "third"):
        with tracking.run(name, {}) as run:
            for number in range(3):
                run.candidate(number, {}, {})
    assert [run.name for run in tracked.tracked_runs(tracking)] == ["third", "second"]


@pytest.mark.parametrize("uri", ["sqlite:///{}", "nonsense://here"])
def test_a_store_of_no_use_is_an_error_that_says_so(tmp_path, uri):
    (tmp_path / "notes.db").write_text("no database " * 100)
    with pytest.raises(QuestreeError, match=r"The runs in .* cannot be read: \S"):
        tracked.tracked_runs(Tracking(uri=uri.format(tmp_path / "notes.db")))


def test_a_store_that_cannot_be_listed_says_why(runs_page, tmp_path):
    missing = tmp_path / "mlflow.db"
    assert f"There is no MLflow store at {missing}." in runs_page(Tracking(uri=f"sqlite:///{missing}"))
    assert not missing.exists()


def test_a_silent_store_is_waited_for_no_longer_than_a_visitor_does(runs_page, monkeypatch):
    ended = Event()
    monkeypatch.setattr(run_pages, "tracked_runs", lambda tracking: ended.wait(60))
    monkeypatch.setattr(run_pages, "_PATIENCE", 0.01)
    assert "have not been read within" in runs_page(Tracking(uri="http://u:secret@localhost"))
    ended.set()


def study_of(*answers: dict[str, str], mlflow: str = "") -> Study:
    """Return the study of runs, each of which answers the questions so."""
    folder = Path(mkdtemp())
    for number, given in enumerate(answers):
        records = []
        for id, answer in given.items():
            tree = ReasoningTree(question=id)
            first = tree.grow(None, query=id, answer=answer, source="lm")
            tree.grow(first, query="the same", answer="the same", source="lm")
            said = {"answer": answer, "tree": tree, "scores": {"em": float(answer == "right")}, "trace": TRACE}
            records.append(Record(id=id, question=id, gold_answers=("right",), **said))
        keep(folder, records, f"run{number}", program=f"p{number}", lm={"name": "simulated/x"})
    study = Study(ShownRuns([folder]), mlflow=mlflow)
    shutil.rmtree(folder)
    return study


def test_a_long_list_has_parts(monkeypatch):
    monkeypatch.setattr("questree.pages.study.ROWS", 9)
    study = study_of({f"q{number:05}": "right" for number in range(2 * 9 + 1)})
    parts = ["questions.html", "questions-part-2.html", "questions-part-3.html"]
    assert [name for name in study.names() if name.startswith("questions")] == parts
    rows = [(study.page(name) or "").count('<th scope="row">') for name in parts]
    assert rows == [9, 9, 1]
    assert study.page("questions-part-4.html") is None


def test_each_run_stands_beside_the_first_and_steps_that_differ_are_told():
    study = study_of({"q": "right"}, {"q": "wrong"}, {"q": "right"})
    names = [name for name in study.names() if name.startswith("question-1")]
    assert names == [f"question-1{which}.html" for which in ("", "-1", "-2", "-with-3", "-3")]
    page = study.page("question-1.html") or ""
    assert "They part at" in page
    assert page.count("<b>differs</b>") == 1
    assert page.count("· the same in both") == 1
    assert "<b>differs</b>" not in (study.page("question-1-with-3.html") or "")
    assert "differs" not in (study_of({"q": "right"}).page("question-1.html") or "")
    assert study.page("question-1-4.html") is None
