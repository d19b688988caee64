"""What DSPy makes anew for every request is made once, and is what DSPy would make."""

from typing import Annotated, Any

import dspy
import pytest
from dspy.adapters.baml_adapter import BAMLAdapter
from dspy.utils import DummyLM
from pydantic import BaseModel, Field

from questree.common.errors import QuestreeError
from questree.evaluation.run import evaluate
from questree.lm.adapters import lenient, type_adapter
from questree.metrics import metric
from questree.programs import build


class Asked(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    answers: list[str] = dspy.OutputField(desc="all of them")


class Named(BaseModel):
    """An answer with a field that its schema describes."""

    name: str = Field(description="the whole name")


INPUTS = {"question": "Why?", "passages": ["[1] Because | it is so."]}
WHOLE = {"question": "How?", "passages": [], "answers": ["so"]}
PART = {"question": "How?", "answers": ["so"]}


@pytest.mark.parametrize("kind", [dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter, BAMLAdapter])
def test_the_messages_are_those_of_the_adapter_and_its_system_message_is_written_once(kind, monkeypatch):
    expected = kind().format(Asked, [PART], INPUTS)
    assert lenient(kind()).format(Asked, [PART], INPUTS) == expected
    monkeypatch.setattr(kind, "format_field_structure", None)  # it is not asked again
    assert lenient(kind()).format(Asked, [PART], INPUTS) == expected


def test_a_form_that_a_demonstration_shows_is_not_described_as_well():
    theirs, ours = (
        one.format(Asked, [PART, WHOLE], INPUTS) for one in (dspy.ChatAdapter(), lenient(dspy.ChatAdapter()))
    )
    assert ours[1:] == theirs[1:]
    system = ours[0]["content"]
    assert "`answers` (list[str]): all of them" in system
    assert system.endswith("Answer the question.")
    assert "[[ ##" not in system
    unhashed = Asked.with_updated_fields("answers", type_=list[Annotated[str, ["of this test"]]])
    assert "[[ ##" not in lenient(dspy.ChatAdapter()).format(unhashed, [WHOLE], INPUTS)[0]["content"]
    described = Asked.with_updated_fields("answers", type_=list[Named])
    shown = {**WHOLE, "answers": [{"name": "Ada Hale"}]}
    assert lenient(dspy.ChatAdapter()).format(described, [shown], INPUTS)[0]["content"].count("the whole name") == 1


def test_a_signature_that_was_changed_in_place_is_written_anew():
    kind = dspy.Signature("question -> answer", "Say it.")
    before = lenient(dspy.ChatAdapter()).format(kind, [], {"question": "Why?"})
    kind.instructions = "Sing it."
    kind.output_fields["answer"].json_schema_extra["desc"] = "in verse"
    after = lenient(dspy.ChatAdapter()).format(kind, [], {"question": "Why?"})
    assert before != after == dspy.ChatAdapter().format(kind, [], {"question": "Why?"})


def test_another_s_adapter_writes_its_own_system_message_each_time():
    class Counting(dspy.ChatAdapter):
        """An adapter that depends on more than the signature."""

        count = 0

        def format_system_message(self, signature: Any) -> str:
            self.count += 1
            return str(self.count)

    adapter = Counting()
    assert [lenient(adapter).format(Asked, [], INPUTS)[0]["content"] for _ in range(2)] == ["1", "2"]


def test_an_adapter_with_an_lm_of_its_own_is_refused_before_anything_is_asked(tmp_path):
    lm = DummyLM([{"answer": "42"}])
    questions = [dspy.Example(id="q", question="Why?", answers=["42"]).with_inputs("question")]
    with dspy.context(lm=lm, adapter=dspy.TwoStepAdapter(lm)):
        with pytest.raises(QuestreeError, match="TwoStepAdapter cannot be used here: its second LM"):
            build("direct", {})(question="Why?")
        with pytest.raises(QuestreeError, match="Use dspy"):
            evaluate(build("direct", {}), questions, metric("em"), out=tmp_path / "run")
    assert lm.history == []


def test_what_checks_a_type_is_made_once():
    kind, unhashed = list[Annotated[int, "of this test"]], list[Annotated[int, ["of this test"]]]
    assert type_adapter(kind) is type_adapter(kind)
    assert type_adapter(unhashed) is not type_adapter(unhashed)  # there is no telling whether it is the same
    assert type_adapter(unhashed).validate_python([1]) == [1]
