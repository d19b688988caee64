"""What is known of an LM before it is asked."""

import dspy
import pytest
from tiny_world import QUESTIONS, SURE

from questree.lm.models import is_simulated, not_known
from questree.simulate import simulated_lm


@pytest.mark.parametrize(
    ("name", "simulated"),
    [
        ("simulated/1a2b3c4d", True),
        ("openai/simulated", True),
        ("openai/recorded-1a2b3c4d", True),
        ("openai/gpt-5", False),
        ("openai/simulatedish", False),
    ],
)
def test_the_name_of_an_lm_says_that_it_is_simulated(name, simulated):
    assert is_simulated(name) == simulated


def test_a_simulated_lm_says_which_questions_it_knows_and_a_real_one_says_nothing():
    lm = simulated_lm(QUESTIONS, SURE)
    assert is_simulated(lm)
    assert not_known(lm, QUESTIONS[0].question) == ""
    assert QUESTIONS[0].question in not_known(lm, "Who wrote Emma?")
    assert not_known(dspy.LM("openai/gpt-5"), "Who wrote Emma?") == ""
