"""Where a field begins in a reply: its marker in any dress, but the first that is written as asked for before all."""

import json

import dspy
import pytest

from questree.lm.adapters import AdapterParseError, lenient
from questree.lm.guard import adapter_named

SIGNATURE = dspy.Signature("question -> final_content, answer")
REPLY = "[[ ## final_content ## ]]\nIt is so:\n- a\n\n[[ ## answer ## ]]\nLiffey\n\n[[ ## completed ## ]]"
MEANT = {"final_content": "It is so:\n- a", "answer": "Liffey"}
OBJECT = json.dumps(MEANT)


def parse(text, signature=SIGNATURE, form="chat"):
    return lenient(adapter_named(form) or dspy.ChatAdapter()).parse(signature, text)


@pytest.mark.parametrize("space", [" ", "   ", "\t", "\N{NO-BREAK SPACE}", "\ufeff", " \t\N{NO-BREAK SPACE} "])
def test_space_before_a_marker_is_no_part_of_a_value(space):
    assert parse(REPLY.replace("[[", f"{space}[[")) == MEANT
    assert parse(REPLY.replace("[[ ## answer ## ]]\n", f"{space}[[ ## answer ## ]] ")) == MEANT


ENDS = [
    " [[ ## completed ## ]]",
    "\N{NO-BREAK SPACE}[[ ## completed ## ]]\n",
    "\n**[[ ## completed ## ]]**",
    "\n### [[ ## ",
]
ENDS += [
    " **[[ ## Completed ## ]]**",
    "\n[[ ## completed ## ]",
    "\n[[ ## completed #",
    "\n[[ ## comp",
    " [[ ##",
    "\n[[",
    "\n[",
]


@pytest.mark.parametrize("end", ENDS)
def test_the_last_marker_may_stand_behind_the_value_or_be_cut(end):
    assert parse(REPLY.replace("\n\n[[ ## completed ## ]]", end)) == MEANT


@pytest.mark.parametrize("value", ["C#", "x[1]", "a [b]", "5 * [2]", "[[1, 2], [3]]", "**bold** [1]"])
def test_a_value_that_ends_like_a_marker_stays_whole(value):
    assert (
        parse(f"[[ ## answer ## ]]\n{value}\n\n[[ ## completed ## ]]", dspy.Signature("q -> answer"))["answer"] == value
    )
    assert parse(f"[[ ## answer ## ]]\n{value} [[ ## completed ## ]]", dspy.Signature("q -> answer"))["answer"] == value
    assert parse(f"[[ ## answer ## ]]\n{value}", dspy.Signature("q -> answer"))["answer"] == value


MARKERS = ["**[[ ## {} ## ]]**", "`[[ ## {} ## ]]`", "### [[ ## {} ## ]]", "> [[ ## {} ## ]]", "- **[[ ## {} ## ]]:**"]
MARKERS += [
    "[[##{}##]]",
    "[[  ##  {}  ##  ]]",
    "[[ ## {} ## ]",
    "[ ## {} ## ]",
    "## {} ##",
    "**## {} ##**",
    "## {} ## ]]",
]
NAMES = {"as it is": str, "capitals": str.upper, "spaces": lambda name: name.replace("_", " ").title()}
NAMES["hyphens"] = lambda name: name.replace("_", "-")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_in_another_dress_is_one_where_the_plain_one_is_missing(marker, name):
    text = REPLY
    for field in ("final_content", "answer", "completed"):
        text = text.replace(f"[[ ## {field} ## ]]", marker.format(name(field)))
    assert parse(text) == MEANT
    assert parse(text.replace("\nLiffey", " Liffey")) == MEANT


@pytest.mark.parametrize("dressed", ["**[[ ## answer ## ]]** Shannon", "## Answer ##", "[[ ## Answer ## ]]", OBJECT])
def test_beside_plain_markers_no_other_dress_counts(dressed):
    reply = f"[[ ## final_content ## ]]\nSo:\n{dressed}\n\n[[ ## answer ## ]]\nLiffey\n\n[[ ## answer ## ]]\nShannon"
    read = parse(f"{dressed}\n{reply}")
    assert read["answer"] == "Liffey"
    assert dressed in read["final_content"] or dressed == "[[ ## Answer ## ]]"


def test_the_first_of_several_counts_in_every_dress():
    assert parse(REPLY + REPLY.replace("Liffey", "Shannon")) == MEANT
    bold = REPLY.replace("[[", "**[[").replace("]]", "]]**")
    assert parse(bold + "\n" + bold.replace("Liffey", "Shannon")) == MEANT
    assert parse(bold + "\n" + REPLY.replace("Liffey", "Shannon").replace("[[ ## final", "[[ ## the")) == MEANT


def test_a_heading_is_no_field_that_was_not_asked_for():
    text = "[[ ## Answer ## ]]\nLiffey\n\n## History ##\nIt is old."
    assert parse(text, dspy.Signature("q -> answer"))["answer"] == "Liffey\n\n## History ##\nIt is old."


OBJECTS = [
    OBJECT,
    f" {OBJECT}\n",
    f"```json\n{OBJECT}\n```",
    f"```\n{OBJECT}\n```",
    f"{OBJECT}\n\n[[ ## completed ## ]]",
]
OBJECTS += [json.dumps({"Answer": "Liffey", "Final Content": MEANT["final_content"]}), OBJECT.replace(r"\n", "\n")]


@pytest.mark.parametrize("text", OBJECTS)
def test_one_object_with_exactly_the_fields_is_a_reply_in_the_chat_form(text):
    assert parse(text) == MEANT


MORE, LESS = json.dumps(MEANT | {"more": 1}), json.dumps({"answer": "Liffey"})
NONE = [MORE, LESS, f"I was told: {OBJECT}", f"{OBJECT}\n{OBJECT}", f"[{OBJECT}]", f"[[ ## passages ## ]]\n{OBJECT}"]
NONE += [
    f"{OBJECT}\n\nI cannot say.",
    f"{OBJECT}\n[[ ## final_content ## ]]\nIt is so.",
    '{"answer": ' * 50_000,
    "[]",
    "1",
]


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_an_object_beside_something_else_or_with_other_fields_is_none(text):
    with pytest.raises(AdapterParseError):
        parse(text)


def test_the_values_of_an_object_have_the_types_of_their_fields():
    signature = dspy.Signature("q -> steps: list[str], sure: bool, answer")
    text = json.dumps({"steps": ["a", "b"], "sure": "Yes", "answer": 1975})
    assert parse(text, signature) == {"steps": ["a", "b"], "sure": True, "answer": "1975"}


@pytest.mark.parametrize("name", ["Final_Content", "FINAL_CONTENT", "final-content", "FinalContent"])
@pytest.mark.parametrize("form", ["json", "baml", "xml"])
def test_a_name_in_another_case_is_the_field_s_in_every_form(form, name):
    xml = form == "xml"
    text = f"<{name}>a</{name}><Answer>b</Answer>" if xml else json.dumps({name: "a", "Answer": "b"})
    assert parse(text, form=form) == {"final_content": "a", "answer": "b"}
    twice = (
        f"<Answer>c</Answer>{text}<answer>d</answer>" if xml else json.dumps({"Answer": "c", name: "a", "answer": "d"})
    )
    assert parse(twice, form=form) == {"final_content": "a", "answer": "d"}


def test_fields_whose_names_differ_by_a_sign_alone_are_not_mixed_up():
    signature = dspy.Signature("q -> a_b, ab")
    assert parse("[[ ## ab ## ]]\n1\n[[ ## a_b ## ]]\n2", signature) == {"ab": "1", "a_b": "2"}
    assert parse('{"ab": "1", "a_b": "2"}', signature, "json") == {"ab": "1", "a_b": "2"}


def test_a_field_named_completed_is_one():
    signature = dspy.Signature("q -> answer, completed")
    assert parse("[[ ## answer ## ]]\na\n[[ ## completed ## ]]\nyes", signature) == {"answer": "a", "completed": "yes"}
