"""The fields of an answer: whatever tells an answer tells the same ones."""

import dspy
import pytest
from parrot import RIGHT, Parrot

from questree import stream
from questree.evaluation.records import record_answer
from questree.optimize import mlflow_model
from questree.pages.asked_question import ShownAnswer
from questree.programs.answer import Answered, as_fields


def test_json_stream_record_page_and_served_model_tell_the_same_fields():
    prediction = Parrot()(question=RIGHT.question)
    [*_, done] = stream(Parrot(), RIGHT.question)
    record = record_answer(RIGHT, prediction)
    said = as_fields(prediction)
    assert said.keys() == Answered.model_fields.keys()
    assert done.model_dump(mode="json")["prediction"].keys() == said.keys()
    assert as_fields(record.prediction) == said
    page = ShownAnswer.of_prediction(record, simulated=False)
    assert page == ShownAnswer.of_prediction(prediction, simulated=False)
    assert {name: value for name, value in page.model_dump(mode="json").items() if name in said} == said
    assert mlflow_model._signature().outputs.input_names() == [*said, "simulated"]


def test_what_a_program_of_ones_own_does_not_tell_is_as_by_default():
    assert Answered.of(dspy.Prediction(answer="Vltava", votes=3)) == Answered(answer="Vltava")
    with pytest.raises(ValueError, match="references"):
        Answered.of(dspy.Prediction(references=["not a passage"]))
