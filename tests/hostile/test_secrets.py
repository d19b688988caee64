"""A server that repeats what it was given: the key reaches no file, no trace and no screen."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html import escape
from urllib.parse import quote, quote_plus

import dspy
import markupsafe
import pytest
from fakes import ListRetriever
from parrot import RIGHT, WRONG, Parrot, right
from reliability.faulty_server import Schedule, at_fault

from questree.common.secrets import holds_secret, remember_address, remember_secrets, without_secrets
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records
from questree.lm.failure import CallFailedError, first_line, remember_lm
from questree.programs.states import to_json
from questree.retrieval import Passage

KEY, PASSWORD = "sk-planted-0123456789", "planted-pass-0987"
SAID = f"You sent Bearer {KEY} to http://me:{PASSWORD}@here/v1"
REPLIES = {
    "an answer": (200, f"[[ ## answer ## ]]\n{SAID}\n\n[[ ## completed ## ]]"),
    "no reply that can be read": (200, SAID),
    "a request refused": (400, SAID),
    "a wrong key": (401, SAID),
    "an error that is cut": (400, f"{'x' * 285}{SAID}"),
    "a fault": (500, SAID),
}


@pytest.fixture
def repeating() -> Iterator[Callable[[int, str], str]]:
    """Serve an LM that always says the same; gives its address."""
    with ExitStack() as servers:

        def serve(status: int, text: str) -> str:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice]}
            body = reply if status == 200 else {"error": {"message": text}}
            address = servers.enter_context(at_fault(lambda *_: (status, body), Schedule([])))
            return f"{address.removeprefix('http://')}/v1"

        yield serve


@pytest.mark.parametrize("kind", REPLIES)
def test_a_key_that_the_server_repeats_is_kept_and_shown_nowhere(
    kind, repeating, questree, workplace, tracking_store, monkeypatch
):
    address = repeating(*REPLIES[kind])
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    remember_address(f"http://me:{PASSWORD}@here/v1")
    row = {"question": "What is it?", "answers": ["it"], "split": "dev"}
    (workplace / "q.jsonl").write_text("".join(json.dumps({"id": str(n), **row}) + "\n" for n in range(2)))
    store = tracking_store(workplace) if kind == "no reply that can be read" else "none"
    ran = questree(
        "evaluate", "direct", "--task", "q.jsonl", "--out", "run", "--tracking-uri", store, "--retries", "0",
        "--lm", "openai/x", "--api-base", f"http://{address}",
    )  # fmt: skip
    shown = questree("show", "run", "0", "--why")
    for text in (ran.out, ran.err, shown.out, shown.err):
        assert PASSWORD not in text
        assert "planted" not in text
    files = [path for path in workplace.rglob("*") if path.is_file()]
    assert "runs.db" in {path.name for path in files}
    assert [path for path in files if b"planted" in path.read_bytes()] == []


def test_no_proxy_is_sent_the_key_of_a_server_on_this_machine(repeating, questree, workplace, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://{repeating(*REPLIES['a fault'])}")
    monkeypatch.setenv("NO_PROXY", "elsewhere.example")
    monkeypatch.setenv("no_proxy", "")
    address = repeating(*REPLIES["an answer"])
    words = ("--lm", "openai/x", "--api-base", f"http://{address}", "--retries", "0")
    assert questree("ask", "Who?", "--program", "direct", *words).code == 0


SPECIAL = "sk-/+\"\\&'-planted"


@pytest.mark.parametrize(
    "said",
    [
        json.dumps(SPECIAL),
        json.dumps(SPECIAL).replace("/", r"\/"),
        repr(SPECIAL),
        quote(SPECIAL),
        quote_plus(SPECIAL),
        re.sub("%..", lambda found: found[0].lower(), quote(SPECIAL, safe="")),
        escape(SPECIAL),
        str(markupsafe.escape(SPECIAL)),
        repr(json.dumps({"key": SPECIAL})),
    ],
)
def test_a_key_that_is_repeated_escaped_is_taken_out_too(said, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SPECIAL)
    assert "planted" not in without_secrets(f"sent {said}.")


def test_a_password_in_the_address_is_shown_nowhere(questree, workplace):
    ran = questree(
        "evaluate", "direct", "--limit", "1", "--out", "run", "--tracking-uri", "none",
        "--retries", "0", "--lm", "openai/x", "--api-base", f"http://me:{PASSWORD}@127.0.0.1:9/v1",
    )  # fmt: skip
    assert ran.code == 2
    assert PASSWORD not in ran.out + ran.err
    assert [path for path in workplace.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()] == []


def test_an_unexpected_error_and_what_libraries_log_are_shown_without_it(questree, monkeypatch, caplog):
    monkeypatch.setenv("SOME_API_KEY", KEY)

    def broken(self, name):
        raise RuntimeError(SAID)

    monkeypatch.setattr("questree.experiment.Experiment.program", broken)
    for words in (("ask", "q?"), ("--debug", "ask", "q?")):
        ran = questree(*words)
        assert (ran.code, KEY in ran.err) == (1, False)
        assert "RuntimeError" in ran.err
    try:
        raise RuntimeError(SAID)
    except RuntimeError:
        logging.getLogger("a library").exception("sent %s", KEY)
    assert "sent …" in caplog.text
    assert KEY not in caplog.text


def test_a_fault_in_a_program_a_retriever_or_a_prediction_is_kept_without_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", KEY)

    class Says(Parrot):
        def reason(self, tree, answer_style):
            if tree.question == WRONG.question:
                raise ValueError("x" * 480 + SAID)
            prediction = super().reason(tree, answer_style)
            prediction.notes = [SAID]
            return prediction

    answered, failed = evaluate(Says(), [RIGHT, WRONG], right, out=tmp_path).records
    assert answered.extras["notes"] == [SAID.replace(KEY, "…")]  # the password is no known one here
    assert "sk-" not in failed.failure.message
    assert len(read_records(tmp_path)) == 2
    assert KEY not in str(CallFailedError("retrieval", SAID).failure) + str(CallFailedError("retrieval", SAID))

    class Remote(ListRetriever):
        remote = True

    program = Parrot()
    program.retriever = Remote({"q": SAID})
    assert KEY not in program.retrieve("q", 1)[0].text


def test_what_is_saved_or_cut_short_holds_no_part_of_it(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    assert KEY not in to_json({"demos": [{"answer": SAID}]})
    assert first_line(ValueError("x" * 290 + KEY)).endswith("x…")


def test_every_form_of_a_secret_is_known():
    lm = dspy.LM(
        "openai/x",
        api_key="own-key-123",
        api_base="https://me:p%40ss-word1@host/v1?code=query-value-1",
        headers={"Authorization": "Bearer header-key-123"},
    )
    remember_lm(lm)
    basic = "bWU6cEBzcy13b3JkMQ=="  # what the server gets for me:p@ss-word1
    for secret in ("own-key-123", "p%40ss-word1", "p@ss-word1", basic, "query-value-1", "header-key-123"):
        assert without_secrets(f"<{secret}>") == "<…>"
        assert holds_secret(f"<{secret}>".encode())
    nested = {"a": [("own-key-123",), Passage(id="p", text="own-key-123")]}
    assert without_secrets(nested) == {"a": [("…",), Passage(id="p", text="…")]}


def test_a_placeholder_or_a_plain_word_is_left_in_answers(monkeypatch):
    for name, value in (("A_KEY", "EMPTY"), ("A_TOKEN", "disabled"), ("A_PASSWORD", "Shakespeare")):
        monkeypatch.setenv(name, value)
    remember_secrets("none")
    assert without_secrets("EMPTY none disabled Shakespeare") == "EMPTY none disabled Shakespeare"


def test_of_two_secrets_the_longer_goes_first():
    remember_secrets("abcd-1234", "abcd-1234-5678")
    assert without_secrets("abcd-1234-5678 abcd-1234") == "… …"
