"""Malformed JSON in a reply is repaired if it is short, and a long one costs no time; XML may hold raw text.

A value that says the right thing in another shape is understood.
"""

import json

import dspy
import json_repair
import pytest

from questree.lm import repairs
from questree.lm.adapters import AdapterParseError, lenient
from questree.lm.call import call
from questree.lm.failure import CallFailedError
from questree.lm.guard import adapter_named
from questree.signatures.chain_of_query import PlanChain
from questree.signatures.knowledge import FilterKnowledge, JudgePassages
from questree.signatures.notes import TakeNotes
from questree.signatures.reviews import ReviewPath
from questree.signatures.searches import JudgeSearchesNeeded
from questree.signatures.subquestions import JudgeSteps, SplitQuestion
from questree.signatures.verdict import CheckStep

LISTS = dspy.Predict("question -> steps: list[str]")
ADAPTERS = {"chat": dspy.ChatAdapter(use_json_adapter_fallback=False), "json": dspy.JSONAdapter()}
LONG = [f"step {n}" for n in range(2_000)]


def reply(adapter, steps):
    return {"steps": steps} if adapter == "chat" else f'Sure:\n```json\n{{"steps": {steps}}}\n```'


@pytest.fixture
def repaired(monkeypatch):
    """The lengths of the texts that were repaired."""
    lengths: list[int] = []
    library = json_repair.loads
    monkeypatch.setattr(json_repair, "loads", lambda text, **how: lengths.append(len(text)) or library(text, **how))
    return lengths


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("piece", ['["a ', "(", "[", '{"a":', "'a' ", "<steps>"])
def test_a_long_reply_of_many_beginnings_is_refused_without_a_repair(adapter, piece, scripted, repaired):
    bad = reply(adapter, piece * (200_000 // len(piece)))
    engine = scripted(bad, bad, bad)
    with dspy.context(adapter=ADAPTERS[adapter]), pytest.raises(CallFailedError, match="unparsable"):
        call(LISTS, question="How?")
    assert engine.replies == []
    assert all(length <= repairs.LONGEST for length in repaired)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_long_reply_that_is_json_is_read_whole(adapter, scripted, repaired):
    scripted(reply(adapter, json.dumps(LONG)))
    with dspy.context(adapter=ADAPTERS[adapter]):
        assert call(LISTS, question="How?").steps == LONG


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_short_reply_is_repaired(adapter, scripted, repaired):
    scripted(reply(adapter, "['one', 'two',"))
    with dspy.context(adapter=ADAPTERS[adapter]):
        assert call(LISTS, question="How?").steps[:2] == ["one", "two"]
    assert repaired


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("AT&T", "AT&T"),
        ("AT&amp;T, &#38; &nbsp;", "AT&T, & &nbsp;"),
        ("1 < 2 && 3 <= 4", "1 < 2 && 3 <= 4"),
        ("&", "&"),
        ("&lt;answer&gt;", "<answer>"),
    ],
)
def test_text_that_an_xml_reply_does_not_escape_is_text(written, read, scripted):
    scripted(f"<answer>\n{written}\n</answer>")
    with dspy.context(adapter=dspy.XMLAdapter()):
        assert call(dspy.Predict("question -> answer"), question="Who?").answer == read


@pytest.mark.parametrize("reply", ["<answer>a", "<answer>a</answers>"])
def test_xml_that_is_none_is_asked_for_again(reply, scripted):
    engine = scripted(reply, reply, "<answer>Paris</answer>")
    with dspy.context(adapter=dspy.XMLAdapter()):
        assert call(dspy.Predict("question -> answer"), question="Who?").answer == "Paris"
    assert engine.replies == []


FORMS = {
    "chat": lambda name, said: f"[[ ## {name} ## ]]\n{said if isinstance(said, str) else json.dumps(said)}",
    "json": lambda name, said: json.dumps({name: said}),
    "baml": lambda name, said: json.dumps({name: said}),
    "xml": lambda name, said: f"<{name}>{said if isinstance(said, str) else json.dumps(said)}</{name}>",
}


def read(form, signature, name, said):
    """What an adapter reads as one field of a signature."""
    for other in [one for one in signature.output_fields if one != name]:
        signature = signature.delete(other)
    adapter = lenient(adapter_named(form) or dspy.ChatAdapter())
    return adapter.parse(signature, FORMS[form](name, said))[name]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("signature", "name", "said", "meant"),
    [
        (CheckStep, "passage_number", "[1]", 1),
        (CheckStep, "passage_number", "Passage 2.", 2),
        (CheckStep, "passage_number", "None", 0),
        (CheckStep, "passage_number", "3 (the film)", 3),
        (CheckStep, "passage_number", "2 - Franz Kafka", 2),
        (CheckStep, "passage_number", "N/A", 0),
        (CheckStep, "verdict", "Supports", "supports"),
        (CheckStep, "verdict", "supports: both mean the same", "supports"),
        (CheckStep, "verdict", "contradicts\n\nThe passage says 1983.", "contradicts"),
        (CheckStep, "verdict", "**SILENT**.", "silent"),
        (JudgeSearchesNeeded, "searches_needed", "One", "one"),
        (ReviewPath, "last_adds", "True.", True),
        (ReviewPath, "last_adds", "No (it repeats)", False),
        (ReviewPath, "last_adds", "**Yes**, it tells where he was born.", True),
        (JudgeSteps, "promise", ".9", 0.9),
        (JudgeSteps, "promise", "85%", 0.85),
        (JudgeSteps, "promise", "0.85 (likely)", 0.85),
        (FilterKnowledge, "kept", "[1][3]", [1, 3]),
        (FilterKnowledge, "kept", "[1] and [3]", [1, 3]),
        (FilterKnowledge, "kept", "[2] > [1]", [2, 1]),
        (FilterKnowledge, "kept", "1, 3", [1, 3]),
        (FilterKnowledge, "kept", "Passages 1 and 3.", [1, 3]),
        (FilterKnowledge, "kept", '["[1]", "3"]', [1, 3]),
        (FilterKnowledge, "kept", "2", [2]),
        (FilterKnowledge, "kept", "- 1\n- Passage 3", [1, 3]),
        (FilterKnowledge, "kept", "None of the passages helps.", []),
        (FilterKnowledge, "kept", "none", []),
        (FilterKnowledge, "kept", "", []),
        (TakeNotes, "new_notes", "None.", []),
        (TakeNotes, "new_notes", "No new facts", []),
        (TakeNotes, "new_notes", "(empty)", []),
        (SplitQuestion, "subquestions", "Step 1: Who?\n**2.** Where was #1 born?", ["Who?", "Where was #1 born?"]),
        (TakeNotes, "new_notes", "", []),
        (TakeNotes, "new_notes", "- a [1]\n- b [3]", ["a [1]", "b [3]"]),
        (TakeNotes, "new_notes", "1. a\n2. b", ["a", "b"]),
        (TakeNotes, "new_notes", ["a", 1975], ["a", "1975"]),
    ],
)
def test_a_value_in_another_shape_is_understood(form, signature, name, said, meant):
    got = read(form, signature, name, said)
    assert (got, type(got)) == (meant, type(meant))


@pytest.mark.parametrize("form", FORMS)
def test_the_objects_of_a_list_are_understood(form):
    plan = [{"query": "When?", "recalled": 1975, "sure": None}, {"query": "Who?", "recalled": None, "sure": "Yes"}]
    steps = read(form, PlanChain, "planned_chain", plan)
    assert [(one.recalled, one.sure) for one in steps] == [("1975", False), (None, True)]
    judged = read(form, JudgePassages, "judgements", [{"number": "[2]", "says": None, "useful": "no"}])
    assert [(one.number, one.says, one.useful) for one in judged] == [(2, "", False)]
    assert read(form, PlanChain, "planned_chain", "null") == []


@pytest.mark.parametrize("form", FORMS)
def test_an_object_alone_is_a_list_of_one_and_several_answers_are_a_text(form):
    step = {"query": "Who?", "recalled": ["Joel Coen", "Ethan Coen"], "sure": True}
    for plan in (step, [step], {"steps": [step]}):
        (read_step,) = read(form, PlanChain, "planned_chain", plan)
        assert (read_step.query, read_step.recalled) == ("Who?", "Joel Coen, Ethan Coen")
    (judged,) = read(form, JudgePassages, "judgements", {"number": 1, "says": "", "useful": True})
    assert judged.useful


@pytest.mark.parametrize(
    ("signature", "name", "said"),
    [
        (CheckStep, "passage_number", "1 and 2"),
        (CheckStep, "passage_number", "the first"),
        (CheckStep, "passage_number", "1, 2"),
        (CheckStep, "verdict", "supports or contradicts"),
        (CheckStep, "verdict", "supports, contradicts or silent"),
        (ReviewPath, "last_adds", "null"),
        (JudgeSteps, "promise", "high"),
        (FilterKnowledge, "kept", "[1] helps, and [3] does not"),
        (FilterKnowledge, "kept", "1-3"),
        (PlanChain, "planned_chain", ["Who?"]),
        (PlanChain, "planned_chain", [{"query": None}]),
        (PlanChain, "planned_chain", {"plan": "Who?"}),
        (JudgePassages, "judgements", [{"number": None, "says": "", "useful": True}]),
        (PlanChain, "planned_chain", ""),
        (TakeNotes, "new_notes", "Jaws is a film [1]"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_cannot_be_understood_is_refused(form, signature, name, said):
    if form == "xml" and said in ("", "Jaws is a film [1]"):
        pytest.skip("an element of XML may be its own list")
    with pytest.raises(AdapterParseError):
        read(form, signature, name, said)


def test_a_single_item_that_begins_like_a_line_of_a_list_is_left_whole():
    assert repairs.in_shape(["1. FC Köln"], list[str]) == ["1. FC Köln"]
    assert repairs.in_shape("1. FC Köln\n2. SV Ulm", list[str]) == ["FC Köln", "SV Ulm"]


def test_null_for_a_text_is_no_word():
    assert read("json", CheckStep, "found", None) == ""
    assert read("json", CheckStep, "found", 1975) == "1975"


@pytest.mark.parametrize("said", ["", "null", "None", "N/A", "{}", None])
def test_a_tool_without_arguments_is_called_in_any_words(said):
    arguments = dspy.Signature("question -> arguments: dict[str, int]")
    for form in FORMS if said is not None else ("json", "baml"):
        assert read(form, arguments, "arguments", said) == {}
    assert read("chat", arguments, "arguments", '{"query": 1}') == {"query": 1}


@pytest.mark.parametrize("said", ["**Prague**", "`Prague`", "```\nPrague\n```", "```text\nPrague\n```", "__Prague__"])
@pytest.mark.parametrize("form", FORMS)
def test_a_text_that_is_bold_or_code_as_a_whole_is_the_text_in_it(form, said):
    assert read(form, CheckStep, "found", said) == "Prague"
    assert read(form, CheckStep, "found", "**Prague** or **Brno**") == "**Prague** or **Brno**"


def test_several_texts_for_one_are_written_in_a_row():
    assert read("json", CheckStep, "found", ["Paris", 1975]) == "Paris, 1975"
    assert read("chat", CheckStep, "found", '["Joel Coen", "Ethan Coen"]') == "Joel Coen, Ethan Coen"
    assert read("chat", CheckStep, "found", '["Heroes" and "Low"]') == '["Heroes" and "Low"]'
    assert repairs.in_shape([], str) == []
    assert repairs.in_shape([["Paris"]], str) == [["Paris"]]


@pytest.mark.parametrize("opened", ["<think>\n", ""])
@pytest.mark.parametrize("form", FORMS)
def test_what_a_reasoning_model_drafts_in_its_thoughts_is_no_reply(form, opened):
    signature = dspy.Signature("question -> answer")
    drafted, meant = (FORMS[form]("answer", said) for said in ("Vienna", "Prague"))
    adapter = lenient(adapter_named(form) or dspy.ChatAdapter())
    assert adapter.parse(signature, f"{opened}It may be\n{drafted}\nNo.\n</think>\n\n{meant}") == {"answer": "Prague"}
