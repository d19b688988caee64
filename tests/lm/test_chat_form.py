"""An LM that does not keep the chat form is asked for JSON, by a schema: remembered, kept and replayed."""

import json
from collections import Counter
from typing import Any

import dspy
import pytest
from fakes import ListRetriever
from pydantic import BaseModel
from reliability.faulty_server import Schedule, at_fault

from questree import program
from questree.evaluation import evaluate
from questree.evaluation.capsule import pack, replay
from questree.lm.adapters import ReplySchema, lenient
from questree.lm.kept_replies import use_lm_cache
from questree.lm.limits import RunPolicy
from questree.lm.options import _warn_no_form
from questree.metrics import metric
from questree.programs import PROGRAMS
from questree.programs.registry import takes_retriever

PROSE, FORM = "It is Paris, I think.", "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"
JSON = '{"answer": "Paris"}'
REFUSALS = {
    "llama.cpp": (400, {"error": {"code": 400, "message": "Failed to initialize samplers: failed to parse grammar"}}),
    "vLLM": (400, {"object": "error", "message": "Structured outputs are not enabled", "code": 400}),
    "OpenAI": (400, {"error": {"message": "Invalid parameter: 'response_format' of type 'json_schema'"}}),
}


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch):
    forget(monkeypatch)


def forget(monkeypatch):
    """Be as a new process is."""
    monkeypatch.setattr("questree.lm.options._refused", set())
    monkeypatch.setattr("questree.lm.options._unread", Counter())


class Server:
    """Gives the replies in order, the last one for ever, and JSON to who asks for it, unless it refuses to."""

    def __init__(self, *replies, refusal=None, end="stop"):
        self.replies, self.refusal, self.end, self.formats = list(replies), refusal, end, []

    def __call__(self, path, body):
        wanted = json.loads(body).get("response_format")
        wanted = wanted and wanted.get("json_schema")
        self.formats.append(wanted and wanted["schema"]["required"])
        if wanted and self.refusal:
            return self.refusal
        reply = JSON if wanted else self.replies.pop(0) if self.replies[1:] else self.replies[0]
        message = {"role": "assistant", "content": reply}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop" if wanted else self.end}]}


@pytest.fixture
def asked():
    """Ask a server as many questions, one after the other; returns their predictions."""

    def ask(server, *questions, name="direct", **how):
        with at_fault(server, Schedule([])) as address:
            lm = dspy.LM("openai/small", api_base=f"{address}/v1", api_key="none", cache=False, **how.pop("lm", {}))
            with dspy.context(lm=lm, **{"adapter": None, **how}):
                asked = program(name)
                return [asked(question=question) for question in questions or ("One?", "Two?")]

    return ask


@pytest.mark.parametrize("end", ["stop", "length"])
def test_an_lm_that_never_keeps_the_form_is_asked_for_json_from_its_third_reply_on(asked, end, caplog):
    _warn_no_form.cache_clear()
    found = asked(server := Server(PROSE, end=end))
    assert [(one.answer, one.spent.calls) for one in found] == [("Paris", 3), ("Paris", 1)]
    assert server.formats == [None, None, ["answer"], ["answer"]]
    assert caplog.text.count("openai/small does not keep the form of replies") == 1


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_server_that_refuses_a_schema_is_not_sent_it_again(asked, refusal):
    found = asked(server := Server(PROSE, refusal=refusal))
    assert [one.failure.cause for one in found] == ["unparsable", "unparsable"]
    assert server.formats == [None, None, ["answer"], None, None, None, None]


@pytest.mark.parametrize(
    ("replies", "how"),
    [
        ([FORM, PROSE, FORM, PROSE, FORM], {}),  # it keeps the form more often than not
        ([FORM, FORM, PROSE, PROSE, FORM], {}),
        (["[[ ## final_content ## ]]\nIt is a long"], {"name": "cot", "end": "length"}),  # it needs more room
        ([PROSE], {"adapter": dspy.XMLAdapter(use_json_adapter_fallback=False)}),
        ([PROSE], {"lm": {"response_format": {"type": "text"}}}),
    ],
)
def test_a_good_lm_another_adapter_and_a_form_of_ones_own_are_sent_no_schema(asked, replies, how):
    server = Server(*replies, end=how.pop("end", "stop"))
    asked(server, "One?", "Two?", "Three?", **how)
    assert len(server.formats) >= 5
    assert not any(server.formats)


def test_kept_replies_are_found_whatever_was_known_of_the_lm_when_they_were_asked_for(asked, monkeypatch, tmp_path):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    monkeypatch.setattr(dspy, "cache", dspy.cache)
    server = Server(PROSE)
    with at_fault(server, Schedule([])) as address:
        for questions in (("One?", "Two?"), ("Two?", "One?")):
            use_lm_cache(f"{address}/v1")
            forget(monkeypatch)
            with dspy.context(lm=dspy.LM("openai/small", api_base=f"{address}/v1", api_key="none"), adapter=None):
                assert [program("direct")(question=one).answer for one in questions] == ["Paris", "Paris"]
    assert len(server.formats) == 4  # those of the first time


@pytest.mark.parametrize("refusal", [None, REFUSALS["vLLM"]])
def test_what_was_asked_for_with_a_schema_is_replayed(refusal, tmp_path):
    questions = [
        dspy.Example(id=str(one), question=f"Where {one}?", answers=["Paris"], answer_style="short").with_inputs(
            "question", "answer_style"
        )
        for one in range(2)
    ]
    with at_fault(Server(PROSE, refusal=refusal), Schedule([])) as address:
        lm = dspy.LM("openai/small", api_base=f"{address}/v1", api_key="none", cache=False)
        with dspy.context(lm=lm, adapter=None):
            policy = RunPolicy(concurrency=1)
            evaluate(program("direct"), questions, [metric("em")], out=tmp_path / "run", policy=policy)
    pack([tmp_path / "run"], tmp_path / "run.capsule")
    [run] = replay(tmp_path / "run.capsule")
    assert [question.record.scores["em"] for question in run.questions] == ([0, 0] if refusal else [1, 1])
    assert run.differing == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_schema_of_every_prompt_names_its_fields_in_their_order(name):
    retriever = ListRetriever({}) if takes_retriever(name, {}) else None
    for predictor in program(name, retriever=retriever).predictors():
        schema = ReplySchema(predictor.signature)["json_schema"]["schema"]
        assert list(schema["properties"]) == schema["required"] == list(predictor.signature.output_fields)


def test_lists_of_objects_and_open_ones_that_keep_the_schema_are_read_in_the_chat_form():
    class Fact(BaseModel):
        text: str
        number: int

    class Find(dspy.Signature):
        question: str = dspy.InputField()
        facts: list[Fact] = dspy.OutputField()
        given: dict[str, Any] = dspy.OutputField()

    schema = ReplySchema(Find)["json_schema"]["schema"]
    assert schema["properties"]["facts"]["items"] == {"$ref": "#/$defs/Fact"}
    assert schema["$defs"]["Fact"]["required"] == ["text", "number"]
    reply = {"facts": [{"text": "It is [[ ## Paris ## ]]", "number": 1}], "given": {"city": "Paris"}}
    read = lenient(dspy.ChatAdapter()).parse(Find, json.dumps(reply))
    assert read == {"facts": [Fact(text="It is [[ ## Paris ## ]]", number=1)], "given": {"city": "Paris"}}
