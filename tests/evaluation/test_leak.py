"""A question that stands among a program's demonstrations is not scored, from Python as from the command line."""

import dspy
import pytest

from questree.common.errors import QuestreeError
from questree.evaluation import compare, evaluate
from questree.programs.baselines.memory import Direct
from questree.programs.composed import Lesson, NearestDemonstrations


@pytest.fixture
def taught(mini):
    """A program that is shown the first dev question with its answer."""
    program = Direct()
    [predictor] = program.predictors()
    predictor.demos = [dspy.Example(question=mini.dev[0].question.upper(), answer=mini.dev[0].answers[0])]
    return program


def test_a_program_is_not_evaluated_on_its_demonstrations(mini, taught):
    with pytest.raises(QuestreeError, match="1 questions are for training and for scoring"):
        evaluate(taught, mini.dev[:2], mini.metric)
    assert evaluate(taught, mini.dev[1:2], mini.metric).n == 1
    lesson = Lesson(inputs={"question": mini.dev[1].question}, demonstrations={})
    with pytest.raises(QuestreeError, match="1 questions are for training and for scoring"):
        evaluate(NearestDemonstrations(Direct(), [lesson], 1), mini.dev[1:2], mini.metric)


def test_no_program_is_asked_if_a_later_one_is_shown_a_question(mini, taught):
    told = []
    programs = {"untaught": Direct(), "taught": taught}
    with pytest.raises(QuestreeError, match="choose different splits"):
        compare(programs, mini.dev[:2], mini.metric, on_progress=lambda *progress: told.append(progress))
    assert told == []
