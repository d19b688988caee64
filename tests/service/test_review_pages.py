"""The page on which a person goes through a file of questions, without a browser."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hostile_text import HOSTILE

from questree.data.question_files import raw_rows
from questree.data.review import write_rows
from questree.service.review_pages import create_review

TEXT = "Paris is a city. Monet was born in Paris in 1840."
ROWS = [
    {
        "question": f"Question {number}?",
        "answers": [f"answer {number}"],
        "steps": [{"question": "Where was Monet born?", "answer": "Paris", "support_title": "Claude Monet"}],
        "quotes": ["Monet was born in Paris"],
        "quoted_from": [TEXT],
    }
    for number in (1, 2, 3)
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_rows(tmp_path / "own.jsonl", ROWS)
    return tmp_path / "own.jsonl"


@pytest.fixture
def client(file: Path) -> TestClient:
    return TestClient(create_review(file), base_url="http://localhost", headers={"accept": "text/html"})


def form(file: Path, number: int, **words: str) -> dict[str, str]:
    row = raw_rows(file)[number - 1]
    return {"id": row["id"], "n": str(number), "question": row["question"], "answers": row["answers"][0]} | words


def test_it_shows_question_answer_steps_and_the_quote_in_its_passage(client: TestClient) -> None:
    page = client.get("/").text
    for told in ("Question 1 of 3", "answer 1", "Where was Monet born?", "<mark>Monet was born in Paris"):
        assert told in page
    assert "Question 2 of 3" in client.get("/?n=2").text
    assert "script-src 'self'" in client.get("/").headers["content-security-policy"]


def test_a_decision_is_written_and_leads_to_the_next_open_question(client: TestClient, file: Path) -> None:
    assert "Question 3 of 3" in client.post("/", data=form(file, 2, decision="drop", note="odd")).text
    assert "Question 1 of 3" in client.post("/", data=form(file, 3, decision="keep")).text
    last = client.post("/", data=form(file, 1, question="Another?")).text  # as Enter sends it
    assert "1 kept, 1 mended, 1 dropped, 0 to go" in last
    assert [row["review"] for row in raw_rows(file)] == ["mend", "drop", "keep"]
    assert raw_rows(file)[1]["note"] == "odd"


def test_what_cannot_be_taken_stays_on_the_page(client: TestClient, file: Path) -> None:
    before = file.read_bytes()
    refused = client.post("/", data=form(file, 2, question="", answers="mine\nand his", decision="keep"))
    assert refused.status_code == 400
    assert "own.jsonl, line 2" in refused.text
    assert "mine\nand his" in refused.text
    assert file.read_bytes() == before


def test_other_peoples_text_stays_text(file: Path, client: TestClient) -> None:
    steps = [{"question": HOSTILE, "answer": HOSTILE, "support_title": HOSTILE}]
    row = {"question": HOSTILE, "answers": [HOSTILE], "steps": steps, "quotes": [HOSTILE], "quoted_from": [HOSTILE]}
    write_rows(file, [row | {"note": HOSTILE, "feedback": HOSTILE, "written_by": HOSTILE}])
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/questree.js" defer>']
    assert "<img" not in page


def test_a_page_of_another_site_decides_nothing(client: TestClient, file: Path) -> None:
    sent = client.post("/", data=form(file, 1, decision="drop"), headers={"origin": "https://example.org"})
    assert sent.status_code == 403
    assert TestClient(create_review(file), base_url="http://example.org").get("/").status_code == 403
    assert all("review" not in json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
