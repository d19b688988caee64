"""questree questions and questree check."""

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest

from questree.cli import check
from questree.data.question_files import read_questions
from questree.data.review import decide
from questree.pages.asked_question import AskedQuestion
from questree.programs import ReasoningTree
from questree.service import KeptQuestions


def test_questions_are_written_and_their_task_can_be_evaluated(questree, index: Path) -> None:
    made = questree(f"questions {index} --out own.jsonl --count 3 --list 0 --absent 0").done()
    assert "simulated LM" in made.out
    assert "own.dropped.jsonl" in made.out
    rows, dropped = (
        [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]
        for name in ("own.jsonl", "own.dropped.jsonl")
    )
    assert 1 <= len(rows) <= 3
    counted = Counter(row["dropped"].partition(" (")[0] for row in dropped)  # together, whatever else was found
    assert counted
    for told in [f"kept {len(rows)}", *(f"{reason} {count}" for reason, count in counted.items())]:
        assert told in " ".join(made.out.split())
    scored = questree(f"evaluate evidence-chain --task own.jsonl --split train,dev,test --retriever {index} --json")
    assert scored.json()["n"] == len(rows)


def test_another_lm_checks_the_questions(questree, index: Path) -> None:
    options = "--count 1 --checked-by openai/other --retries 0 --give-up-after 100"
    questree(f"questions {index} --out own.jsonl {options}").done()
    rows = [json.loads(line) for line in Path("own.dropped.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["checked_by"] for row in rows if "checked_by" in row} == {"openai/other"}
    assert "failed: auth" in {row["dropped"] for row in rows}  # it has no key here; the one that writes needs none


def test_check_shows_what_it_found_on_one_screen(questree, index: Path) -> None:
    out = questree(f"check --retriever {index}").done().out
    assert "WRONG" not in out
    for told in ("simulated", "The Magic Flute", "1 calls until it could be read", "53 questions"):
        assert told in " ".join(out.split())


def test_check_ends_with_1_where_an_answer_stands_nowhere(questree, index: Path) -> None:
    Path("own.jsonl").write_text(json.dumps({"question": "Who?", "answers": ["Zzyzx"], "split": "dev"}), "utf-8")
    ran = questree(f"check --retriever {index} --task own.jsonl")
    assert ran.code == 1
    assert "WRONG task own: 1 questions; answers that do not stand in the corpus: 1" in " ".join(ran.out.split())


@pytest.mark.parametrize(("models", "code"), [(["gpt-4.1-mini"], 0), (["llama", "qwen"], 1), (None, 0)])
def test_check_knows_whether_the_server_has_the_model(questree, index: Path, monkeypatch, models, code: int) -> None:
    import httpx

    def get(address: str, **_) -> httpx.Response:
        asked = httpx.Request("GET", address)
        assert address == "http://127.0.0.1:9/v1/models"
        if models is None:
            return httpx.Response(404, request=asked)
        return httpx.Response(200, json={"data": [{"id": one} for one in models]}, request=asked)

    monkeypatch.setattr(httpx, "get", get)
    monkeypatch.setattr(check, "_asked", lambda *_: "Salzburg")
    ran = questree(f"check --retriever {index} --lm openai/gpt-4.1-mini --api-base http://127.0.0.1:9/v1")
    assert ran.code == code
    assert ("which has llama, qwen" in " ".join(ran.out.split())) == bool(code)
    assert "window of 1,047,576 tokens; $1.60" in " ".join(ran.out.split())


def test_check_says_that_no_server_is_there(questree, index: Path) -> None:
    ran = questree(f"check --retriever {index} --lm openai/m --api-base http://127.0.0.1:9/v1 --retries 0")
    assert ran.code == 1
    assert "WRONG reply" in " ".join(ran.out.split())


def test_a_review_in_the_terminal_asks_what_is_open_and_ends_with_q(questree, workplace, monkeypatch) -> None:
    asked = [{"question": f"Question {n}?", "answers": [f"answer {n}"]} for n in range(4)]
    Path("own.jsonl").write_text("\n".join(map(json.dumps, [{**asked[0], "review": "keep"}, *asked[1:]])), "utf-8")
    said = iter(["n", "odd", "k", "m", "Another?", "one;two", "d", "q"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(said))
    out = questree("review own.jsonl --terminal").done().out
    assert "Question 0?" not in out
    assert "4 of 4: Question 3?" in out
    rows = [json.loads(line) for line in Path("own.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row.get("review") for row in rows] == ["keep", "keep", "drop", None]
    assert rows[1]["note"] == "odd"
    assert (rows[2]["question"], rows[2]["answers"]) == ("Another?", ["one", "two"])


@pytest.mark.parametrize(("name", "told"), [("own.csv", "ends with .jsonl"), ("own.jsonl", "holds no questions")])
def test_a_review_says_what_it_cannot_read(questree, workplace, name: str, told: str) -> None:
    Path(name).write_text("", encoding="utf-8")
    assert told in " ".join(questree(f"review {name}").err.split())


def test_what_people_said_is_collected_and_outlives_its_review(questree, workplace) -> None:
    tree = ReasoningTree(question="Which river?")
    about = {"id": "a", "program": "p", "answer_style": "short", "asked_at": datetime.now(timezone.utc)}
    said = {"helpful": False, "note": "no", "state": "answered", "answer": "Seine", "answers": ("Seine",)}
    KeptQuestions(Path("kept")).keep(AskedQuestion(tree=tree, **about, **said))
    out = questree("questions --from-feedback kept --out said.jsonl").done().out
    assert "1 questions, 1 of them without a right answer yet" in out
    row = json.loads(Path("said.jsonl").read_text(encoding="utf-8"))
    assert (row["feedback"], row["answers"]) == ("of the answer 'Seine': no", [])
    decide(Path("said.jsonl"), "a", "keep", question="Which river?", answers=["Danube"])
    assert "1 questions, 0 of them" in questree("questions --from-feedback kept --out said.jsonl").done().out
    assert [one.answers for one in read_questions(Path("said.jsonl"))] == [("Danube",)]


def test_the_folder_of_the_file_is_made_or_told_before_anything_is_paid(questree, index: Path, monkeypatch) -> None:
    questree(f"questions {index} --out new/own.jsonl --count 1").done()
    assert Path("new/own.jsonl").exists()
    monkeypatch.setattr("questree.evaluation.own_questions.write_questions", None)
    assert "Cannot write new/own.jsonl/b.jsonl" in questree(f"questions {index} --out new/own.jsonl/b.jsonl").refused()


@pytest.mark.parametrize("words", ["", "index --from-feedback kept"])
def test_questions_are_of_an_index_or_of_feedback(questree, workplace, words: str) -> None:
    ran = questree(f"questions {words} --out own.jsonl")
    assert ran.code == 2
    assert "give the folder of an index, or --from-feedback" in " ".join(ran.err.split())
