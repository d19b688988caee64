"""The pages in a real browser: asked, watched, stopped, cited, with and without scripts, under hostile text."""

import asyncio
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dspy
import pytest
from hostile_text import HOSTILE
from run_files import keep
from tiny_world import PASSAGES, RIVER

from questree.common.event_loop import awaited
from questree.data.question_files import raw_rows
from questree.data.review import write_rows
from questree.evaluation.comparison.page import as_page
from questree.evaluation.comparison.rows import Comparison
from questree.evaluation.evaluation import Evaluation
from questree.evaluation.records import Record
from questree.evaluation.stored_runs import stored_runs
from questree.evaluation.tracking import Tracking
from questree.lm.spent import Spent
from questree.pages.asked_question import AskedQuestion
from questree.programs import Program, ReasoningTree, answered, build
from questree.retrieval import Passage
from questree.retrieval.serving.listener import running
from questree.service.review_pages import create_review

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install questree[dev]")
expect = playwright.expect
expect.set_options(timeout=30_000)  # the machine may be busy

SIZES = {"wide": (1280, 900), "narrow": (360, 740)}


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[playwright.Page]:
    """A page that fails the test if anything on it goes wrong, is forbidden, or asks for something from elsewhere."""
    with opened(browser) as page:
        yield page


@contextmanager
def opened(browser, **how) -> Iterator[playwright.Page]:
    context = browser.new_context(**how)
    context.set_default_timeout(30_000)
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: faults.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda asked: None if here(asked.url) else faults.append(f"asked for {asked.url}"))
    yield page
    assert faults == []
    context.close()


def here(url: str) -> bool:
    return "//127.0.0.1:" in url or url.startswith(("file:", "data:"))


@pytest.fixture
def address(make_service, serve) -> str:
    return serve(make_service())


def ask(page, address: str, question: str = RIVER.question, program: str = "searchain") -> None:
    page.goto(address)
    page.get_by_label("Question", exact=True).fill(question)
    page.locator(f'input[name="program"][value="{program}"]').check()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/questions/*")


def test_nodes_come_as_they_grow_and_a_mark_opens_its_sentence(page, address, tap):
    ask(page, address)
    expect(page.get_by_role("status")).to_contain_text("running: planning")
    expect(page.locator(".step")).to_have_count(0)
    tap.let(1)
    expect(page.locator(".step")).not_to_have_count(0)
    expect(page.locator(".working")).to_contain_text("LM call1")
    permalink = page.url
    tap.let(10**6)
    expect(page.get_by_role("status")).to_contain_text("Supported by passages")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator(".short")).to_have_text("Vltava")
    expect(page.locator(".map .end")).to_have_text("Vltava")
    expect(page.locator(".step").last).to_contain_text("the answer")

    mark, sentence = page.locator(".prose .cite").first, page.locator("#cited-1 mark").first
    expect(sentence).to_be_visible()  # at the side
    page.set_viewport_size({"width": 390, "height": 800})
    expect(sentence).to_be_hidden()
    mark.click()
    expect(sentence).to_be_visible()  # as a sheet
    assert sentence.inner_text() in [passage.text for passage in PASSAGES.values()]
    page.keyboard.press("Escape")
    expect(sentence).to_be_hidden()
    expect(mark).to_be_focused()

    page.get_by_label("Was this of use?").fill("As it should be.")
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#said")).to_contain_text("Kept with the question.")
    page.get_by_role("link", name="every prompt, reply and search").click()
    expect(page.get_by_text("PlanChain").first).to_be_visible()
    page.goto(permalink)
    expect(page.get_by_label("Was this of use?")).to_have_value("As it should be.")
    page.goto(address)
    expect(page.get_by_role("complementary")).to_contain_text("Vltava, supported by passages")


def test_what_was_watched_is_what_the_server_shows(page, address, tap):
    ask(page, address, program="tree-of-reviews")
    for number in range(1, 3):
        tap.let(number)
        tap.wait_for(number + 1)
    tap.let(10**6)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    watched = page.locator("#live").inner_html()
    page.reload()
    tidy = "html => html.replace(/\\s+/g, ' ').replaceAll('> <', '><')"
    assert page.evaluate(tidy, watched) == page.evaluate(tidy, page.locator("#live").inner_html())


def test_stop_stops(page, address, tap):
    ask(page, address)
    tap.let(1)
    tap.wait_for(2)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".short")).to_have_text("Stopped")
    expect(page.locator(".step")).not_to_have_count(0)
    tap.let(10**6)
    page.goto(address)
    assert tap.asked == 2


def test_a_question_is_asked_and_read_with_the_keyboard(page, address, tap):
    tap.let(10**6)
    page.goto(address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Question", exact=True)).to_be_focused()
    page.keyboard.type(RIVER.question)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Supported")
    page.locator(".prose .cite").first.press("Enter")
    expect(page).to_have_url(re.compile("#cited-1$"))


def test_without_scripts_a_question_is_asked_and_read(browser, address, tap):
    with opened(browser, java_script_enabled=False) as page:
        ask(page, address)
        expect(page.get_by_role("status")).to_contain_text("running")
        tap.let(10**6)
        expect(page.get_by_role("status")).to_contain_text("Supported")  # it loads itself again
        page.set_viewport_size({"width": 390, "height": 800})
        page.locator(".prose .cite").first.click()
        expect(page.locator("#cited-1 mark").first).to_be_visible()


def test_the_text_is_shown_while_it_is_written(page, address, tap):
    tap.writes.clear()
    tap.let(10**6)
    ask(page, address)
    begun = page.locator(".writing").inner_text()
    assert page.locator(".short").count() == 0
    tap.writes.set()
    expect(page.locator(".short")).to_have_text("Vltava")
    assert re.sub(r" \[(\d)]", r"\1", begun) in page.locator(".prose").inner_text()
    assert page.locator(".writing").count() == 0


def test_a_printed_page_has_the_sources_and_no_controls(page, address, tap):
    tap.let(10**6)
    ask(page, address)
    expect(page.locator(".short")).to_have_text("Vltava")
    page.emulate_media(media="print")
    expect(page.locator("#cited-1 blockquote")).to_be_visible()
    for control in page.locator("button, textarea, .actions, #again, nav a").all():
        expect(control).not_to_be_visible()


class TwoSteps(Program):
    """A program whose node changes when the test lets it."""

    name = "two-steps"
    watched = threading.Event()

    def __init__(self):
        super().__init__()

    def reason(self, tree: ReasoningTree, answer_style: str) -> dspy.Prediction:
        node = tree.grow(None, query="Who?", found=tuple(Passage(id=id, text="He wrote.") for id in "pq"))
        awaited(asyncio.to_thread(self.watched.wait, 30))
        tree.update(node, answer="Franz Kafka", source="completed")
        return answered(tree, "Franz Kafka", "Franz Kafka", [])


def test_a_passage_that_is_open_and_focused_stays_so_when_its_node_changes(page, make_service, serve):
    service = make_service()
    service.programs["two-steps"] = TwoSteps()
    TwoSteps.watched.clear()
    ask(page, serve(service), program="two-steps")
    passage = page.locator(".step summary")
    passage.focus()
    page.keyboard.press("Enter")
    TwoSteps.watched.set()
    expect(page.locator(".step .a")).to_contain_text("Franz Kafka")
    expect(passage).to_be_focused()
    expect(page.locator(".step details")).to_have_attribute("open", "")


class Hostile(Program):
    """A program all of whose texts are hostile; it waits once for the test, so that a page sees it grow."""

    name = "hostile"
    watched = threading.Event()

    def __init__(self):
        super().__init__()

    def reason(self, tree: ReasoningTree, answer_style: str) -> dspy.Prediction:
        awaited(asyncio.to_thread(self.watched.wait, 30))
        passage = Passage(id=HOSTILE, title=HOSTILE, text=f"Paris. {HOSTILE}.")
        first = tree.grow(None, query=HOSTILE, answer=HOSTILE)
        node = tree.grow(first, query=HOSTILE, answer=HOSTILE, source="completed")
        tree.update(node, passage=passage, support=HOSTILE)
        return answered(tree, HOSTILE, f"{HOSTILE} lies in Paris [1]. {HOSTILE} in Rome [1].", [passage])


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_text_neither_runs_nor_draws(browser, make_service, serve, scripts):
    service = make_service()
    service.programs["hostile"] = Hostile()
    Hostile.watched.clear()
    with opened(browser, java_script_enabled=scripts) as page:
        ask(page, serve(service), HOSTILE, "hostile")
        Hostile.watched.set()
        expect(page.locator(".standing")).to_contain_text("The simulated LM knows only")
        assert "Questree" in page.title()
        assert page.title() != "ran"
        for mark in page.locator(".prose .cite").all():
            mark.click()
        expect(page.locator("#cited-1")).to_contain_text("<script>document.title='ran'</script>")
        expect(page.locator(".prose .weak").first).to_contain_text("weak")
        assert page.locator("main img, main script, main iframe").count() == 0
        assert "\u202e" not in page.content()


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_axe_finds_no_fault(browser, make_service, serve, tap, scheme, size):
    width, height = SIZES[size]
    service = make_service()
    address = serve(service)
    failed = failed_question()
    service.kept.keep(failed)
    how = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
    with opened(browser, **how) as page:
        for path in ("/", "/api", "/login", "/prompts/searchain", f"/questions/{failed.id}"):
            page.goto(address + path)
            check(page)
        ask(page, address)
        tap.let(1)
        expect(page.locator(".step")).not_to_have_count(0)
        check(page)
        tap.let(10**6)
        expect(page.get_by_role("status")).to_contain_text("Supported")
        page.locator(".prose .cite").first.click()
        check(page)


def check(page) -> None:
    """Fail if axe finds a fault, folded parts included, or if the page is wider than the screen."""
    page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    faults = [(one["id"], [node["html"] for node in one["nodes"]]) for one in axe.run(page).response["violations"]]
    assert (page.url, faults) == (page.url, [])
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def failed_question() -> AskedQuestion:
    """Return a question that failed, with all that is said of it."""
    return AskedQuestion(
        id="f" * 16,
        program="searchain",
        answer_style="short",
        asked_at="2026-01-01T00:00:00Z",
        tree=ReasoningTree(question="Why?"),
        state="failed",
        failure={
            "cause": "server",
            "message": "HTTP 500",
            "where": {"program": "searchain", "step": "plan", "prompt": "x" * 3000, "reply": "y"},
        },
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of two runs over hostile questions, of which one is answered by the second run alone."""
    questions = tmp_path_factory.mktemp("task") / "hostile.jsonl"
    asked = [{"id": f"q{n}", "question": f"{HOSTILE} {n}?", "answers": ["right"]} for n in range(3)]
    questions.write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    folder = questions.parent / "runs"
    for name, answers in {"first": ["right", "wrong", HOSTILE], "second": ["right", "right", "wrong"]}.items():
        records = []
        for one, answer in zip(asked, answers, strict=True):
            tree = ReasoningTree(question=one["question"])
            tree.grow(None, query=HOSTILE, answer=answer, source="lm")
            about = {"tree": tree, "final_content": answer, "spent": Spent(calls=1, cost=0.1), "hops": len(answer)}
            about |= {"id": one["id"], "question": one["question"], "gold_answers": one["answers"]}
            records.append(Record(answer=answer, scores={"em": float(answer == "right")}, **about))
        keep(folder, records, name, lm={"name": "simulated/x"}, task="hostile")
    return folder


def flipped(page) -> None:
    """From the comparison's page, follow the links to the flipped question and its two trees."""
    expect(page.get_by_role("heading", level=1)).to_have_text("2 programs on 3 questions, task hostile")
    expect(page.locator(".lead")).to_contain_text("it wins 1 and loses 0")
    page.get_by_role("link", name="second right, first not").click()
    rows = page.get_by_role("row")
    expect(rows).to_have_count(2)
    page.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=2)).to_have_count(2)
    expect(page.get_by_text("differs", exact=True)).to_have_count(1)
    page.get_by_role("link", name="whole answer").first.click()
    expect(page.locator(".short")).to_have_text("wrong")
    assert page.locator("main script, main img").count() == 0
    assert page.title() != "ran"


@pytest.mark.parametrize("scripts", [True, False])
def test_two_runs_are_compared_and_a_flipped_question_is_a_few_clicks_away(browser, make_service, serve, runs, scripts):
    address = serve(make_service(), runs=[runs])
    with opened(browser, java_script_enabled=scripts) as page:
        page.goto(address)
        page.get_by_role("link", name="Runs").click()
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.get_by_role("button", name="Compare").click()
        flipped(page)


def test_a_copy_opens_from_the_disk(browser, questree, runs, workplace):
    assert questree("export", str(runs), "--out", "site").code == 0
    with opened(browser) as page:
        page.goto((workplace / "site" / "index.html").as_uri())
        assert page.evaluate("getComputedStyle(document.body).margin") == "0px"
        flipped(page)


def test_a_page_of_a_comparison_is_one_file_without_a_fault(browser, runs, workplace):
    compared = Comparison({run.name: Evaluation("em", run.records, False) for run in stored_runs([runs])}, HOSTILE)
    (workplace / "page.html").write_text(as_page(compared))
    for width in (360, 1280):
        with opened(browser, viewport={"width": width, "height": 740}) as page:
            page.goto((workplace / "page.html").as_uri())
            expect(page.get_by_role("img", name="em against LM calls")).to_be_visible()
            check(page)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, runs, tracking_store) -> tuple[Tracking, str]:
    """A store, and the id of its compilation: the two runs are its evaluations before and after."""
    tracking = Tracking(uri=tracking_store(tmp_path_factory.mktemp("store")))
    with tracking.run("W" * 80, {"task": "mini"}) as run:
        for stage, stored in zip(("before", "after"), stored_runs([runs]), strict=True):
            run.evaluation(Evaluation("em", stored.records, False), prefix=f"{stage}_")
    with tracking.run("without questions", {"x" * 80: "y" * 300}):
        pass
    return tracking, run.id


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_axe_finds_no_fault_in_the_pages_of_runs_and_of_a_tracked_compilation(
    browser, make_service, serve, runs, compiled, size, scheme
):
    width, height = SIZES[size]
    tracking, id = compiled
    service = make_service()
    service.programs["compiled"] = build("direct", {})
    demonstration = {"question": HOSTILE, "answer_style": "short", "answer": HOSTILE}
    service.programs["compiled"].predictors()[0].demos = [dspy.Example(**demonstration)]
    how = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
    address = serve(service, runs=[runs], tracking=tracking)
    with opened(browser, **how) as page:
        page.goto(f"{address}/runs")
        check(page)
        for source in ("1", id):
            for name in ("index", "questions", "question-1", "question-1-1")[:: 1 if size == "narrow" else 3]:
                page.goto(f"{address}/runs/{source}/{name}.html")
                check(page)
        expect(page.get_by_role("navigation").get_by_role("link", name="after", exact=True)).to_be_visible()
        page.goto(f"{address}/runs")
        page.get_by_role("link", name="without questions").click()
        expect(page.get_by_text("This run holds no questions")).to_be_visible()
        check(page)
        page.goto(f"{address}/prompts/compiled")
        expect(page.locator(".lead")).to_have_text("1 of 1 prompts changed: 1 demonstration in 1.")
        check(page)


@pytest.mark.parametrize("size", SIZES)
def test_questions_are_reviewed_with_the_keyboard_alone(browser, tmp_path, size: str) -> None:
    rows = [{"question": f"Question {number}?", "answers": ["Paris"]} for number in range(1, 5)]
    write_rows(tmp_path / "own.jsonl", rows)
    width, height = SIZES[size]
    app, how = create_review(tmp_path / "own.jsonl"), {"viewport": {"width": width, "height": height}}
    with running(app) as address, opened(browser, **how) as page:
        page.goto(address)
        for keys, number in ((["d"], 2), (["ArrowRight"], 3), (["ArrowLeft"], 2), (["n", "k", "Escape", "k"], 3)):
            for key in keys:
                page.keyboard.press(key)
            expect(page.get_by_role("heading", name=f"Question {number} of 4")).to_be_visible()
        page.keyboard.press("a")
        page.keyboard.press("Control+A")
        page.keyboard.type("Rome")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("Roma")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Question 4 of 4")).to_be_visible()
        check(page)
    kept = raw_rows(tmp_path / "own.jsonl")
    assert [row.get("review") for row in kept] == ["drop", "keep", "mend", None]
    assert (kept[1]["note"], kept[2]["answers"]) == ("k", ["Rome", "Roma"])
