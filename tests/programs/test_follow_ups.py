"""A program is asked a follow-up: one call makes it complete in itself."""

import dspy
import pytest
from lms import scripted as scripted

from questree.programs import Program, answered

WHOLE = "In which town did the painter of Impression, Sunrise die?"
HISTORY = ["user: Who painted Water Lilies?", "assistant: Claude Monet"]


class Echo(Program):
    """Answers with the question that it was asked."""

    name, searches = "echo", False

    def reason(self, tree, answer_style):
        """Return the question."""
        return answered(tree, tree.question, tree.question, [])


@pytest.fixture
def asked(scripted):
    """Ask a question with an LM that gives these replies, no fewer and no more."""

    def ask(question: str, *replies, **how) -> dspy.Prediction:
        engine = scripted(*replies)
        said = Echo()(question=question, **how)
        assert engine.replies == []
        return said

    return ask


@pytest.mark.parametrize(
    ("restated", "told"), [("Where was Monet born?", "Where was Monet born?"), (" ", "Where was he born?")]
)
def test_the_question_is_complete_in_itself_and_its_call_is_counted(asked, restated: str, told: str) -> None:
    said = asked("Where was he born?", {"restated": restated}, history=HISTORY)
    assert (said.answer, said.tree.question, said.failure, said.spent.calls) == (told, told, None, 1)


def test_without_a_history_nothing_is_asked(asked) -> None:
    assert asked("Where was he born?").spent.calls == 0


def test_a_question_that_cannot_be_restated_fails(asked) -> None:
    said = asked("Where was he born?", *[{"nothing": ""}] * 3, history=HISTORY)
    assert (said.answer, said.failure.cause) == ("", "unparsable")


def test_the_command_line_takes_what_was_said_before(questree, monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(
        "questree.programs.modules.follow_ups.restated", lambda question, history: shown.append(history) or WHOLE
    )
    words = 'ask "Where did he die?" --follow-up "Who painted Impression, Sunrise?" --follow-up "Claude Monet"'
    for form in ("text", "json"):
        assert WHOLE in questree(f"{words} --format {form} --program direct").done().out
    assert shown == [["Who painted Impression, Sunrise?", "Claude Monet"]] * 2
