"""POST /ask: JSON, events, refusals, and a client that leaves; the pages beside it."""

import json
import re
import socket
import threading
from contextlib import ExitStack
from html import escape
from itertools import count

import dspy
import httpx
import pytest
from tiny_world import PASSAGES, QUESTIONS, RIVER, SURE

from questree.evaluation import Tracking
from questree.programs import build
from questree.retrieval import build_index
from questree.retrieval.retriever_names import open_retriever
from questree.retrieval.serving.listener import running
from questree.service import create_app
from questree.service.pending_question import PendingQuestion
from questree.simulate import simulated_lm

ASKED = {"question": RIVER.question}


def events(text: str) -> list[tuple[str, dict]]:
    """Return the kind and the data of each event of a stream."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


@pytest.mark.parametrize("program", [None, "tree-of-reviews"])
def test_an_answer_says_what_each_mark_stands_for(client, program):
    reply = client.post("/ask", json=ASKED | {"program": program}).json()
    assert (reply["state"], reply["answer"], reply["failure"]) == ("answered", "Vltava", None)
    assert reply["cited"]
    for cited in reply["cited"]:
        assert reply["final_content"][cited["start"] : cited["end"]] == f"[{cited['number']}]"
        assert cited["sentence"] in cited["passage"] == reply["references"][cited["number"] - 1]["text"]
    assert client.get(reply["permalink"] + ".json").json() == reply


def test_each_call_and_each_search_is_shown_with_its_seconds(client, monkeypatch):
    clock = count().__next__
    for timed in ("call", "episode"):
        monkeypatch.setattr(f"questree.lm.{timed}.perf_counter", clock)
    reply = client.post("/ask", json=ASKED).json()
    page = client.get(f"{reply['permalink']}/calls").text
    assert len(re.findall(r"LM call · [1-9]\d*\.000 s", page)) == reply["spent"]["calls"]
    searched = [node["query"] for node in reply["tree"]["nodes"] if not node["read_before"]]
    assert re.findall(r"search: “(.+?)” · [1-9]\d*\.000 s", page) == searched != []


def test_events_are_the_tree_as_it_grows(client):
    stream = client.post("/ask", json=ASKED, headers={"accept": "text/event-stream"})
    *told, (last, done) = events(stream.text)
    nodes = {event["node"]["id"]: event["node"] for kind, event in told if kind.startswith("node")}
    assert last == "done"
    assert list(nodes.values()) == done["tree"]["nodes"]
    assert done["answer"] == "Vltava"
    kinds = {"node_grown", "node_changed", "searching", "call_begun", "call_ended", "written"}
    assert {kind for kind, _ in told} == kinds
    written = [event["text"] for kind, event in told if kind == "written"]
    assert all(done["final_content"].startswith(text) for text in written)


@pytest.mark.parametrize(("limits", "is_written"), [({}, True), ({"stream_lm": False}, False)])
def test_an_answer_is_shown_as_it_is_written_unless_the_lm_is_asked_without_a_stream(
    limits, is_written, make_service, tap, visit, monkeypatch
):
    monkeypatch.setattr("questree.lm.options._refused", set())
    tap.let(100)
    stream = visit(make_service(**limits)).post("/ask", json=ASKED, headers={"accept": "text/event-stream"})
    kinds = [kind for kind, _ in events(stream.text)]
    assert kinds[-1] == "done"
    assert ("written" in kinds) == is_written


def test_an_event_is_one_line_to_any_client(client):
    question = "Where is\u2028 \u2029 Prague?"
    stream = client.post("/ask", json=ASKED | {"question": question}, headers={"accept": "text/event-stream"})
    told = [json.loads(line.removeprefix("data:")) for line in stream.iter_lines() if line.startswith("data:")]
    assert told[-1]["question"] == question


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 400, "body.question: Field required"),
        ({"question": ""}, 400, "body.question: String should have at least 1 character"),
        ({"question": "x" * 20_001}, 400, "body.question: String should have at most 20000 characters"),
        (ASKED | {"answer_style": "rude"}, 400, "body.answer_style: Input should be 'short'"),
        (ASKED | {"program": "serchain"}, 404, "Did you mean 'searchain'?"),
        (ASKED | {"sekonds": 3}, 400, "body.sekonds: Extra inputs are not permitted"),
        (ASKED | {"seconds": 0}, 400, "body.seconds: Input should be greater than 0"),
    ],
)
def test_what_does_not_fit_is_refused_and_says_where(client, body, status, said):
    refused = client.post("/ask", json=body)
    assert refused.status_code == status
    assert said in refused.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/ask", "/v1/chat/completions"])
def test_a_body_that_is_not_said_to_be_json_is_refused_and_says_why(client, path):
    as_form = {"content-type": "application/x-www-form-urlencoded"}
    refused = client.post(path, content=json.dumps(ASKED), headers=as_form)
    assert refused.status_code == 400
    assert "Content-Type: application/json" in refused.json()["error"]["message"]


def test_a_question_without_an_answer_says_why(client):
    reply = client.post("/ask", json={"question": "   "}).json()
    assert (reply["state"], reply["failure"]["cause"], reply["answer"]) == ("failed", "question", "")


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({}, 429, "1 questions of yours are on their way"),
        ({"program": "serchain"}, 404, "Did you mean &#39;searchain&#39;?"),
        ({"answer_style": "rude"}, 400, "There is no answer style &#39;rude&#39;."),
        ({"question": "x" * 20_001}, 400, "The question has 20,001 characters; 20,000 are the most."),
        ({"question": " "}, 400, "The question is empty: write one."),
    ],
)
def test_a_form_that_is_refused_keeps_what_was_written(make_service, visit, form, status, said):
    written = ASKED | {"program": "tree-of-reviews", "answer_style": "long"} | form
    client = visit(make_service(per_client=1))
    client.post("/questions", data=ASKED, follow_redirects=False)
    refused = client.post("/questions", data=written)
    assert refused.status_code == status
    assert client.post("/ask", json=ASKED).json()["error"]["code"] == "too_many_questions"
    assert said in refused.text
    assert f">{written['question'].strip()}</textarea>" in refused.text
    for name, said in (("program", "checked"), ("answer_style", "selected")):
        assert f'value="{written[name]}" {said}>' in refused.text or name in form


CHAT = {"model": "searchain", "messages": [{"role": "user", "content": RIVER.question}]}


@pytest.mark.parametrize(
    ("path", "accept", "body"),
    [
        ("/ask", "application/json", ASKED),
        ("/ask", "text/event-stream", ASKED),
        ("/v1/chat/completions", "*/*", CHAT),
        ("/v1/chat/completions", "*/*", CHAT | {"stream": True}),
        ("/v1/responses", "*/*", {"model": "searchain", "input": RIVER.question, "stream": True}),
    ],
)
def test_a_client_that_leaves_ends_its_question(make_service, tap, serve, path, accept, body):
    service = make_service()
    address, content = serve(service), json.dumps(body)
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as client:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
        tap.wait_for(1)
        (question,) = service._questions.values()
    with httpx.Client(base_url=address) as other:  # until the question is kept, its page says that it goes on
        while other.get(f"/questions/{question.asked.id}.json").json()["state"] != "stopped":
            pass
    tap.let(10**6)
    assert tap.asked == 1


def test_a_server_that_ends_stops_the_questions_first(make_service, tap):
    service = make_service()
    app = create_app(service)
    with ExitStack() as server:
        address = server.enter_context(running(app, ending=service.close))
        with httpx.stream("POST", f"{address}/ask", json=ASKED, headers={"accept": "text/event-stream"}) as stream:
            tap.wait_for(1)
            ending = threading.Thread(target=server.pop_all().close)
            ending.start()
            *_, (kind, done) = events("".join(stream.iter_text()))
        ending.join()
    assert (kind, done["state"]) == ("done", "stopped")


def test_a_page_drawn_before_its_question_ended_gets_the_whole_tree(make_service, tap, visit):
    service = make_service()
    client = visit(service)
    asked = client.post("/questions", data=ASKED, follow_redirects=False).headers["location"]
    tap.wait_for(1)
    page = client.get(asked).text
    tap.let(10**6)
    while isinstance(service.find(asked.rpartition("/")[2]), PendingQuestion):
        client.get(asked)  # until it is kept, and its events are gone
    (address,) = re.findall(r'data-events="(.*?)"', page)
    told = client.get(address).text
    assert (page.count('class="step '), "Supported by passages" in told) == (0, True)
    assert told.count('class="step ') == client.get(asked).text.count('class="step ') > 0


def test_the_openapi_description_is_a_page_that_needs_no_script(client):
    page = client.get("/api").text
    described = client.get("/openapi.json").json()
    for path in ("/ask", "/v1/chat/completions", "/v1/models", "/questions/{id}.json"):
        assert path in described["paths"]
        assert path in page
    assert "<script" not in page
    assert "answer_style" in page


def test_the_openapi_description_tells_the_form_of_errors(client):
    described, refused = client.get("/openapi.json").json(), client.post("/ask", json={}).json()["error"]
    for methods in described["paths"].values():
        for one in methods.values():
            assert [*one["responses"]] == ["200", "default"]
            form = one["responses"]["default"]["content"]["application/json"]["schema"]
            assert form == {"$ref": "#/components/schemas/ErrorReply"}
    assert described["components"]["schemas"]["ErrorDetails"]["properties"].keys() == refused.keys()


def test_a_page_says_what_a_simulated_lm_cannot_know(make_service, visit):
    """In the tests' own service the LM is behind a tap, so that nothing is known of it."""
    service = make_service()
    service._lm = simulated_lm(QUESTIONS, SURE)
    client = visit(service)
    id = client.post("/ask", json={"question": "Who is the president of France?"}).json()["id"]
    page = client.get(f"/questions/{id}").text
    for told in (page, client.get("/").text):
        assert "The simulated LM knows only the questions of its task" in told
        assert escape(QUESTIONS[0].question) in told
    assert "Answered." not in page


def test_what_a_user_says_of_an_answer_is_feedback_of_its_trace(
    make_service, tap, visit, tmp_path, tracking_store, mlflow
):
    tap.let(10**6)
    service, tracking = make_service(), Tracking(uri=tracking_store(tmp_path))
    client = visit(service)
    with tracking.run("serve", {}) as run:
        service.traces = run.traces
        asked = client.post("/ask", json=ASKED).json()
        client.post(f"/questions/{asked['id']}/said", data={"helpful": "no", "note": "Too short."})
        found = mlflow.get_trace(asked["trace"].rpartition("/")[2])
    [said] = found.info.assessments
    assert (said.name, said.value, said.rationale, said.source.source_type) == ("helpful", False, "Too short.", "HUMAN")


def test_a_compiled_program_shows_its_prompts_before_and_after(make_service, visit):
    service = make_service()
    plain, compiled = build("direct", {}), build("direct", {})
    compiled.predictors()[0].demos = [dspy.Example(question="<b id=x>who", answer_style="short", answer="me")]
    service.programs |= {"plain": plain, "first/compiled": compiled}
    client = visit(service)
    assert "The prompts of" in client.get("/prompts").text
    assert "<ins>" not in client.get("/prompts/plain").text
    page = client.get("/prompts/first/compiled").text
    assert "1 of 1 prompts changed: 1 demonstration in 1." in page
    assert "equal lines</summary>" in page
    assert "&lt;b id=x&gt;who" in page[page.index("1 demonstration added") :]
    assert client.get("/prompts/nobody").status_code == 404


def test_the_ask_page_names_an_index_by_its_folder_and_what_compilation_added(
    make_service, visit, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    index = open_retriever(build_index(PASSAGES.values(), "indexes/rivers", kind="bm25"))
    service = make_service()
    compiled = build("oner-cot", {}, retriever=open_retriever("linked:indexes/rivers"))
    [answer] = compiled.predictors()
    answer.signature, answer.demos = answer.signature.with_instructions("Think."), [dspy.Example(answer="me")]
    service.programs = {"plain": build("oner", {}, retriever=index), "compiled": compiled}
    page = visit(service).get("/").text
    assert "Searches rivers (bm25) and rivers (linked bm25) and asks" in page
    assert index.fingerprint not in page
    added = "compiled: instructions of 1 of 1 prompts, 1 demonstration"
    assert page.count(f"Compiled{added.removeprefix('compiled')}.") == 1
    assert (service.about("plain")["Program"], service.about("compiled")["Program"]) == ("oner", f"oner-cot, {added}")


def test_a_follow_up_is_restated_whether_its_history_or_its_question_before_is_given(client, restating):
    shown = restating(RIVER.question)
    history = ["Who wrote The Metamorphosis?", "Franz Kafka"]
    first = client.post("/ask", json={"question": "And his river?", "history": history}).json()
    assert (first["question"], first["said"], first["answer"]) == (RIVER.question, "And his river?", "Vltava")
    second = client.post("/ask", json={"question": "Is it long?", "after": first["id"]}).json()
    third = client.post("/ask", json={"question": "And deep?", "after": second["id"]}).json()
    assert "Franz Kafka" in shown[0]
    assert "user: And his river?" in shown[1]
    for said in ("user: And his river?", "user: Is it long?", "assistant: ", "Vltava"):
        assert said in shown[2]
    page = client.get(third["permalink"]).text
    before = [page.index(f'/questions/{one["id"]}">{one["said"]}</a>') for one in (first, second)]
    assert before == sorted(before)
    assert client.post("/ask", json=ASKED | {"after": "none of this id"}).status_code == 404


def test_a_follow_up_is_refused_where_that_is_off(make_service, visit, tap):
    client = visit(make_service(follow_ups=False))
    refused = client.post("/ask", json=ASKED | {"history": ["Who?"]})
    assert (refused.status_code, tap.asked) == (400, 0)
    assert "no follow-ups" in refused.text


def test_the_page_of_a_question_asks_a_follow_up(client, restating):
    first = client.post("/ask", json=ASKED).json()
    assert f'name="after" value="{first["id"]}"' in client.get(first["permalink"]).text
    shown = restating(RIVER.question)
    asked = client.post("/questions", data={"question": "And then?", "after": first["id"]}, follow_redirects=False)
    id = asked.headers["location"].rpartition("/")[2]
    reply = client.get(f"/questions/{id}.json").json()
    while reply["state"] in ("waiting", "running"):
        reply = client.get(f"/questions/{id}.json").json()
    assert (reply["after"], reply["said"], len(shown)) == (first["id"], "And then?", 1)
