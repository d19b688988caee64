"""Repeated runs, and how the variance of their scores falls apart."""

import json

import dspy
import pytest
from answering import AnsweringEngine
from parrot import RIGHT, WRONG, Parrot, right

import questree
from questree.common.errors import QuestreeError
from questree.evaluation.evaluation import Evaluation
from questree.evaluation.records import Record
from questree.evaluation.repeats import Repeats, repeat
from questree.evaluation.stored_runs import stored_runs


def run(*scores: float) -> Evaluation:
    records = (Record(id=str(n), question="q", scores={"em": score}) for n, score in enumerate(scores))
    return Evaluation("em", tuple(records))


def test_chance_is_the_variance_within_a_question():
    always_the_same = Repeats((run(1, 0, 1, 0), run(1, 0, 1, 0)))
    assert (always_the_same.within, always_the_same.between) == (0, pytest.approx(1 / 3))
    all_chance = Repeats((run(1, 0, 1, 0), run(0, 1, 0, 1)))
    assert (all_chance.within, all_chance.between) == (0.5, 0)
    mixed = Repeats((run(1, 0, 1, 1), run(1, 0, 0, 1), run(1, 0, 1, 1)))
    assert mixed.score.mean == pytest.approx((1 + 0 + 2 / 3 + 1) / 4)
    assert mixed.within == pytest.approx((1 / 3) / 4)
    assert mixed.between == pytest.approx(0.2222222 - mixed.within / 3, abs=1e-6)


class Draws(Parrot):
    """Answers with the rollout that its LM has."""

    def reason(self, tree, answer_style):
        prediction = super().reason(tree, answer_style)
        prediction.answer = str(dspy.settings.lm.kwargs["rollout_id"])
        return prediction


@pytest.mark.parametrize("temperature", [0.7, None])  # a server that is sent none has one of its own
def test_every_run_has_replies_and_a_folder_of_its_own(temperature, tmp_path):
    program = Draws()
    with dspy.context(lm=dspy.LM("some/lm", temperature=temperature)):
        repeats = repeat(program, [RIGHT, WRONG], [right], 3, out=tmp_path)
        assert len(repeat(program, [RIGHT, WRONG], [right], 3, out=str(tmp_path)).runs) == 3
    assert len({one.records[0].answer for one in repeats.runs}) == 3
    assert [run.name for run in stored_runs([tmp_path])] == ["repeat-1", "repeat-2", "repeat-3"]
    assert json.loads((tmp_path / "repeats.json").read_text())["score"] == vars(repeats.score)
    assert len(program.asked) == 6  # resumed, not asked again


def test_an_lm_of_the_program_s_own_replies_anew_in_each_run():
    engine = AnsweringEngine(lambda asked: {"answer": "a"}, None)
    program, lm = questree.program("direct"), dspy.LM("answering/test", engine=engine, num_retries=0)
    program.set_lm(lm.copy(temperature=0.7))
    example = dspy.Example(id="1", question="asked of an LM of its own", answers=["a"]).with_inputs("question")
    with dspy.context(lm=dspy.LM("never/asked", temperature=0.7)):
        repeats = repeat(program, [example], right, 2)
    assert [run.spent.cached for run in repeats.runs] == [0, 0]
    assert len(engine.asked) == 2
    program.set_lm(lm.copy(temperature=0.0))
    with pytest.raises(QuestreeError, match="give --temperature"):
        repeat(program, [example], right, 2)


def test_a_greedy_lm_is_not_repeated():
    for lm in (None, dspy.LM("some/lm", temperature=0.0)):
        with dspy.context(lm=lm), pytest.raises(QuestreeError, match="give --temperature"):
            repeat(Parrot(), [RIGHT], [right], 2)
    with pytest.raises(QuestreeError, match="two or more"):
        repeat(Parrot(), [RIGHT], [right], 1)
