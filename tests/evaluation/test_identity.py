"""What tells one run from another: the program's state, its predictors' settings, and the LMs that it asks."""

import dspy
import pytest

from questree.common.errors import QuestreeError
from questree.evaluation.identity import lms_facts, run_identity, state_digest
from questree.evaluation.run import evaluate
from questree.programs import build
from questree.programs.composed import Lesson, NearestDemonstrations
from questree.retrieval import ExactDuplicates

REAL = dspy.LM("openai/real", api_base="http://127.0.0.1:9/v1", api_key="x", num_retries=0)
LESSONS = [
    Lesson(inputs={"question": words}, demonstrations={"answer": [{"question": words, "answer": "Prague"}]})
    for words in ("Where was Kafka born?", "Where did Kafka live?")
]


def test_demonstrations_that_are_chosen_by_question_are_a_part_of_the_state():
    def taught(count, k):
        return state_digest(NearestDemonstrations(build("direct", {}), LESSONS[:count], k))

    assert len({taught(2, 1), taught(2, 2), taught(1, 1)}) == 3
    assert taught(2, 1) == taught(2, 1)


def test_a_setting_of_a_predictor_is_a_part_of_the_state():
    program = build("direct", {})
    before = state_digest(program)
    for predictor in program.predictors():
        predictor.update_config(temperature=1.5)
    assert state_digest(program) != before


class SameLength:
    """A check of repeated queries, by their length."""

    name, threshold = "same-length", 0.5

    def __call__(self, query, seen):
        return next((index for index, other in enumerate(seen) if len(other) == len(query)), None)


def same_words(query, seen):
    return None


@pytest.mark.parametrize("settings", [{}, {"of": "searchain"}], ids=["searchain", "self-consistency"])
def test_another_check_of_repeated_queries_is_another_run(settings):
    def check(duplicates):
        program = build("self-consistency" if settings else "searchain", settings, duplicates=duplicates)
        return run_identity(program, task="")["duplicates"]

    assert check(None) == check(ExactDuplicates()) == {}  # the one that it has by itself
    assert check(SameLength()) == {"name": "same-length", "threshold": 0.5}
    assert check(same_words) == {"name": "same_words", "threshold": None}


def test_the_lms_are_those_that_the_predictors_ask(mini):
    simulated = dspy.settings.lm
    with dspy.context(lm=REAL):
        program = build("oner-cot", {}, retriever=mini.index)
        assert lms_facts(program)["name"] == "openai/real"
        program.set_lm(simulated)
        assert (lms_facts(program)["name"], lms_facts(program)["simulated"]) == (simulated.model, True)
        mixed = build("searchain", {}, retriever=mini.index)
        mixed.predictors()[0].lm = simulated
        facts = lms_facts(mixed)
        assert facts["name"] == f"openai/real, {simulated.model}"
        assert facts["simulated"]
        assert [one["name"] for one in facts["of predictors"].values()].count(simulated.model) == 1


def test_answers_of_a_program_s_own_lm_are_marked_and_not_taken_for_another_s(mini, tmp_path):
    simulated = dspy.settings.lm
    with dspy.context(lm=REAL):
        program = build("direct", {})
        program.set_lm(simulated)
        found = evaluate(program, mini.examples(1, 2).dev, mini.metric, out=tmp_path)
        assert found.simulated
        program.set_lm(REAL)
        with pytest.raises(QuestreeError, match="another run"):
            evaluate(program, mini.examples(1, 2).dev, mini.metric, out=tmp_path)
