"""Malformed JSON in a reply is repaired if it is short, and a long one costs no time; XML may hold raw text."""

from __future__ import annotations

import json

import dspy
import pytest

from questree.lm import repairs
from questree.lm.call import call
from questree.lm.failure import CallFailedError

LISTS = dspy.Predict("question -> steps: list[str]")
ADAPTERS = {"chat": dspy.ChatAdapter(use_json_adapter_fallback=False), "json": dspy.JSONAdapter()}
LONG = [f"step {n}" for n in range(2_000)]


def reply(adapter, steps):
    return {"steps": steps} if adapter == "chat" else f'Sure:\n```json\n{{"steps": {steps}}}\n```'


@pytest.fixture
def repaired(monkeypatch):
    """The lengths of the texts that were repaired."""
    lengths: list[int] = []
    library = repairs._repaired
    monkeypatch.setattr(repairs, "_repaired", lambda text, **how: lengths.append(len(text)) or library(text, **how))
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
