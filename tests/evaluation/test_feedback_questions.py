"""What people said of answers becomes questions of a task."""

from pathlib import Path

import pytest

from questree.data.question_files import raw_rows, read_questions
from questree.data.review import decide, write_rows
from questree.evaluation.feedback_questions import UserFeedback, feedback_rows
from questree.evaluation.records import Record
from questree.evaluation.tracked_runs import assessments
from questree.evaluation.tracking import Tracking
from questree.lm.failure import Failure
from questree.programs.tree import ReasoningTree
from questree.retrieval import Passage

MONET = Passage(id="m", title="Claude Monet", text="Claude Monet was born in Paris.")
PARIS = Passage(id="p", title="", text="Through Paris flows the Seine.")
TRACE = "experiments/1/traces/tr-1"


def record(id: str = "a", question: str = "Which river?", helpful: bool | None = True, note: str = "", **how) -> Record:
    tree = ReasoningTree(question=question)
    born = tree.grow(None, query="Where was Monet born?", answer="Paris", passage=MONET, support=MONET.text)
    tree.grow(born, query="Which river flows there?", answer="Seine", passage=PARIS, support=PARIS.text)
    fields = {"answer": "Seine", "answers": ["Seine"], "references": [MONET, PARIS], "tree": tree} | how
    return Record(id=id, question=question, extras={"helpful": helpful, "note": note}, **fields)


def test_a_yes_is_a_question_with_its_answer_its_passages_and_its_steps(tmp_path: Path) -> None:
    rows = feedback_rows([record()], {})
    write_rows(tmp_path / "said.jsonl", rows)
    [question] = read_questions(tmp_path / "said.jsonl")
    assert (question.question, question.answers, question.gold_passages) == ("Which river?", ("Seine",), ("m", "p"))
    assert question.gold_titles == ("Claude Monet",)
    assert [(one.question, one.answer, one.support_title) for one in question.steps] == [
        ("Where was Monet born?", "Paris", "Claude Monet"),
        ("Which river flows there?", "Seine", None),
    ]
    assert (rows[0]["quotes"], rows[0]["quoted_from"]) == ([MONET.text, PARIS.text], [MONET.text, PARIS.text])


def test_a_no_with_a_note_is_a_question_once_a_person_gives_the_right_answer(tmp_path: Path) -> None:
    out = tmp_path / "said.jsonl"
    write_rows(out, feedback_rows([record(helpful=False, note="that is in Paris"), record("b", "Who?")], {}))
    assert [one.id for one in read_questions(out)] == ["b"]
    decide(out, "a", "keep", question="Which river?", answers=["Danube"])
    question = read_questions(out)[0]
    assert (question.answers, question.gold_passages) == (("Danube",), ())
    assert question.to_example().feedback == "of the answer 'Seine': that is in Paris"
    assert raw_rows(out)[0]["review"] == "mend"


@pytest.mark.parametrize(
    "told",
    [
        {"helpful": None},
        {"helpful": False},
        {"failure": Failure(cause="deadline", message="too late"), "answer": "", "answers": []},
    ],
)
def test_what_tells_nothing_is_left_out(told: dict) -> None:
    assert feedback_rows([record(**told)], {}) == []


def test_the_last_word_on_a_question_counts() -> None:
    rows = feedback_rows([record(), record("b", "which  River?", False, "no")], {})
    assert [(row["id"], "dropped" in row) for row in rows] == [("b", True)]


@pytest.mark.parametrize(
    ("assessed", "answers", "dropped"),
    [
        (UserFeedback(right="Danube"), ["Danube"], False),
        (UserFeedback(helpful=True), ["Seine"], False),
        (UserFeedback(helpful=False, note="wrong"), [], True),
    ],
)
def test_what_was_said_in_mlflow_counts(assessed: UserFeedback, answers: list[str], dropped: bool) -> None:
    [row] = feedback_rows([record(helpful=None, trace=TRACE)], {TRACE: assessed})
    assert (row["answers"], "dropped" in row) == (answers, dropped)


def test_assessments_of_people_are_read_from_the_store(tmp_path: Path, mlflow, tracking_store) -> None:
    from mlflow.entities import AssessmentSource

    uri = tracking_store(tmp_path)
    mlflow.set_tracking_uri(uri)
    span = mlflow.start_span_no_context("a question")
    span.end()
    mlflow.flush_trace_async_logging()
    for kind, value in (("CODE", True), ("HUMAN", False)):
        by = AssessmentSource(source_type=kind, source_id="me")
        mlflow.log_feedback(trace_id=span.trace_id, name="helpful", value=value, rationale=f"says {kind}", source=by)
        mlflow.log_expectation(trace_id=span.trace_id, name="expected_response", value=f"of {kind}", source=by)
    place = f"experiments/0/traces/{span.trace_id}"
    found = assessments(Tracking(uri=uri), [place, "experiments/0/traces/tr-gone"])
    assert found == {place: UserFeedback(False, "says HUMAN", "of HUMAN")}
