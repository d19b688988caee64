"""The pictures of the pages in the guides: ``python benchmarks/pictures.py`` makes them anew (the LM is simulated).

Chromium takes them: ``apt-get install chromium``, and the extra ``browser`` of setup.cfg. Name an empty folder for
QUESTREE_CACHE: kept replies would show as such.
"""

import os
import shutil
import tempfile
from pathlib import Path

import dspy
from frame import bundled_questions, bundled_retriever
from playwright.sync_api import Browser, Page, sync_playwright

from questree.cli import app
from questree.evaluation import Tracking
from questree.programs import build
from questree.retrieval.serving.listener import running
from questree.service import KeptQuestions, Service, create_app
from questree.service.review_pages import create_review
from questree.simulate import Traits, simulated_lm

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORE = "sqlite:///mlflow.db"
QUESTION = "Which river flows by the native city of the composer of The Magic Flute?"
SHORT_QUESTION = "Which river nearly encircles the birthplace of Charles Darwin?"
SIZES = {"wide": {"width": 1100, "height": 820}, "narrow": {"width": 390, "height": 820}}


def main() -> None:
    """Take every picture in a wide light window and in a narrow dark one."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("There is no chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that the pages show short names
        # before the runs, which hold this question: a kept reply has no tokens
        app(["ask", SHORT_QUESTION, "--format", "html", "--out", "tree.html"], standalone_mode=False)
        shown = create_app(service(), runs=[compared()], tracking=Tracking(uri=STORE), mlflow="http://127.0.0.1:5000")
        with running(shown) as address, sync_playwright() as started:
            browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            take(browser, address, "wide", "light")
            take(browser, address, "narrow", "dark")
            take_tree(browser)
            take_review(browser)
            browser.close()
        os.chdir(DOCS)  # Windows removes no folder that somebody works in


def compared() -> Path:
    """Return a folder of two runs over the first bundled questions, which are tracked as well."""
    out = Path("runs/compared")
    for words in (["evaluate", "tree-of-reviews"], ["compare", "searchain", "direct", "--out", str(out)]):
        app([*words, "--limit", "20", "--tracking-uri", STORE], standalone_mode=False)
    return out


def service() -> Service:
    """Return a service of two programs over the bundled passages."""
    dspy.configure(lm=simulated_lm(bundled_questions(), Traits(latency=0.3, malformed=0), cache=False))
    programs = {name: build(name, {}, retriever=bundled_retriever()) for name in ("searchain", "tree-of-reviews")}
    return Service(programs, KeptQuestions(Path("questions")))


def take(browser: Browser, address: str, size: str, scheme: str) -> None:
    """Take a picture of a question that is being answered, and of its answer with a citation opened."""
    page = browser.new_page(viewport=SIZES[size], color_scheme=scheme)
    page.goto(address)
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_role("button", name="Ask").click()
    page.locator(".step").first.wait_for()
    save(page, f"ask-growing-{size}")
    page.locator(".short").wait_for()
    page.locator(".prose .cite").first.click()
    page.evaluate("scrollTo(0, 0)")
    save(page, f"ask-answered-{size}")
    page.goto(f"{address}/runs")
    save(page, f"runs-list-{size}")
    page.goto(f"{address}/runs/1/lost-2.html")
    save(page, f"runs-flipped-{size}")
    page.get_by_role("rowheader").get_by_role("link").first.click()
    save(page, f"runs-trees-{size}")


def take_tree(browser: Browser) -> None:
    """Take README's picture: a page that ``questree ask`` has written."""
    page = browser.new_page(viewport={"width": 1100, "height": 600})
    page.goto(Path("tree.html").resolve().as_uri())
    save(page, "tree", whole=True)


def take_review(browser: Browser) -> None:
    """Take the page on which questions that an LM wrote are reviewed."""
    app(["index", "mini", "--out", "handbook", "--kind", "bm25"], standalone_mode=False)
    app(["questions", "handbook", "--count", "8", "--list", "0", "--out", "handbook.jsonl"], standalone_mode=False)
    with running(create_review(Path("handbook.jsonl"))) as address:
        for size, scheme in (("wide", "light"), ("narrow", "dark")):
            page = browser.new_page(viewport=SIZES[size], color_scheme=scheme)
            page.goto(address)  # at the first that is open
            for number, key in enumerate("kd", start=2) if size == "wide" else ():
                page.keyboard.press(key)
                page.get_by_role("heading", name=f"Question {number} of").wait_for()
            save(page, f"review-{size}")


def save(page: Page, name: str, *, whole: bool = False) -> None:
    """Write what the window shows, or the whole page, to a file of the guides."""
    page.screenshot(path=DOCS / f"{name}.png", full_page=whole)


if __name__ == "__main__":
    main()
