"""What of an LM's text is its reply: thoughts may draft one and reject it, and tokens of a chat template end it."""

import json
import time

import dspy
import pytest
from dspy.lm15 import Message, Response, TextPart, ThinkingPart, Usage
from fakes import FunctionEngine

from questree.lm.adapters import AdapterParseError, lenient
from questree.lm.call import call
from questree.lm.failure import CallFailedError
from questree.lm.guard import adapter_named
from questree.lm.thoughts import without_thoughts

SIGNATURE = dspy.Signature("question -> final_content, answer")
FIELDS = tuple(SIGNATURE.output_fields)
FORMS = {
    "chat": lambda **said: "\n\n".join(f"[[ ## {name} ## ]]\n{one}" for name, one in said.items()),
    "json": lambda **said: json.dumps(said),
    "baml": lambda **said: f"```json\n{json.dumps(said)}\n```",
    "xml": lambda **said: "\n".join(f"<{name}>{one}</{name}>" for name, one in said.items()),
}
THOUGHTS = {
    "think": ("<think>", "</think>"),
    "thinking": ("<thinking>", "</thinking>"),
    "the prompt began them": ("", "</think>"),
    "Mistral": ("[THINK]", "[/THINK]"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "Cohere": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Gemma": ("<|channel>thought\n", "<channel|>"),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "harmony, of a type": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    "harmony, no channel": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    "harmony, unmarked": ("analysis", "assistantfinal"),
}
ENDS = ["<|im_end|>", "<|eot_id|>", "<|END_RESPONSE|>", "<|return|>", "</s>", "<end_of_turn>\n", "<turn|>", "[EOS]"]
ENDS += ["<｜end▁of▁sentence｜>", "<|endoftext|>", "<|im_end|>\n<|im_start|>user\nAnd who is [[ ## answer ## ]]\nhe?"]


def parse(form, text):
    return lenient(adapter_named(form) or dspy.ChatAdapter()).parse(SIGNATURE, text)


def written(form, answer="Prague"):
    return FORMS[form](final_content="He was born there.", answer=answer)


MEANT = {"final_content": "He was born there.", "answer": "Prague"}


@pytest.mark.parametrize(("begin", "end"), THOUGHTS.values(), ids=THOUGHTS)
@pytest.mark.parametrize("form", FORMS)
def test_a_draft_that_was_rejected_in_thoughts_is_no_reply(form, begin, end):
    draft = written(form, "Vienna")
    assert parse(form, f"{begin}It may be\n{draft}\nNo.\n{end}{written(form)}") == MEANT


@pytest.mark.parametrize("form", FORMS)
def test_after_several_thoughts_the_last_ones_end_is_where_the_reply_begins(form):
    thoughts = f"<think>It may be {written(form, 'Vienna')}</think>\nHm.\n<think>Or {written(form, 'Brno')}</think>"
    assert parse(form, f"{thoughts}\n{written(form)}") == MEANT


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_turn_ends_where_its_token_says_so(form, end):
    assert parse(form, f"{written(form)}{end}") == MEANT
    assert parse(form, f"<|im_start|>assistant\n{written(form)}\n{end}") == MEANT


def test_tokens_in_a_value_are_no_part_of_it():
    assert parse("chat", written("chat", "<|begin_of_box|>Prague<|end_of_box|>")) == MEANT
    assert parse("chat", written("chat", "5 <| 6 |> 7, <b>x</b>"))["answer"] == "5 <| 6 |> 7, <b>x</b>"


@pytest.mark.parametrize("around", ["<think>{}</think>", "<think>{}", "[THINK]{}[/THINK]\n<|im_end|>", "{}\n</think>"])
@pytest.mark.parametrize("form", FORMS)
def test_thoughts_that_are_one_whole_reply_are_read(form, around):
    assert parse(form, around.format(written(form))) == MEANT


DRAFTS = {
    "one draft, and a no": "It may be\n{0}\nNo, that is wrong.",
    "two drafts": "{0}\nNo:\n{1}",
    "words": "I do not know.",
}


@pytest.mark.parametrize("text", DRAFTS.values(), ids=DRAFTS)
@pytest.mark.parametrize("around", ["<think>{}</think>\n", "<think>{}", "<|channel|>analysis<|message|>{}<|end|>"])
@pytest.mark.parametrize("form", FORMS)
def test_thoughts_that_are_none_or_several_are_refused_with_the_place_of_the_text(form, around, text):
    with pytest.raises(AdapterParseError, match="all of the LM's text is thoughts"):
        parse(form, around.format(text.format(written(form, "Vienna"), written(form))))


def thinking(*replies):
    """An LM each of whose replies is a text, and all that its server took for thoughts."""
    left = list(replies)

    def complete(request):
        text, thoughts = left.pop(0)
        parts = [ThinkingPart(thoughts), *([TextPart(text)] if text else [])]
        usage = Usage(input_tokens=10, output_tokens=5, total_tokens=15)
        message = Message.assistant(parts)
        return Response(id=None, model="thinking", message=message, finish_reason="stop", usage=usage)

    return dspy.LM("thinking/test", engine=FunctionEngine(complete), cache=False, num_retries=0), left


@pytest.mark.parametrize("text", ["", "\n\n"])
@pytest.mark.parametrize("thought", ["{}", "Let me see.\n</think>\n{}", "Hm.\n{}\n\n"])
@pytest.mark.parametrize("form", FORMS)
def test_a_reply_that_a_server_took_for_thoughts_is_read_at_once(form, thought, text):
    end = "\n\n[[ ## completed ## ]]" if form == "chat" else ""
    lm, left = thinking((text, thought.format(written(form) + end)))
    with dspy.context(lm=lm, adapter=adapter_named(form)):
        reply = call(dspy.Predict(SIGNATURE), question="Where was he born?")
    assert (dict(reply), left) == (MEANT, [])


def test_thoughts_beside_a_reply_change_nothing():
    lm, _ = thinking((written("chat"), written("chat", "Vienna")))
    with dspy.context(lm=lm, adapter=None):
        assert dict(call(dspy.Predict(SIGNATURE), question="Where was he born?")) == MEANT


def test_thoughts_that_hold_no_reply_are_asked_again_and_told():
    lm, left = thinking(*[("", f"It may be\n{written('chat', 'Vienna')}\nNo, that is wrong.")] * 3)
    with dspy.context(lm=lm, adapter=None), pytest.raises(CallFailedError, match="reasoning_content") as failed:
        call(dspy.Predict(SIGNATURE), question="Where was he born?")
    assert (failed.value.failure.cause, left) == ("unparsable", [])


PIECES = ["<think>", "</think>", "</s>", "</s> ", "<|im_end|>", "<|channel|>final", "[[ ## ", "analysis assistantfinal"]


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_takes_no_more_than_its_length(piece):
    text = f"analysis {piece * (200_000 // len(piece))}"
    began = time.process_time()
    for form in ("chat", "json"):
        with pytest.raises(AdapterParseError):
            parse(form, text)
    assert time.process_time() - began < 5  # quadratic would be hours


def test_a_text_without_thoughts_is_itself():
    for text in ("", "Prague", written("chat"), "x <think", "a < b | c > d"):
        assert without_thoughts(text, FIELDS) == text
