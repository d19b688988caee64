"""A compiled program is asked its kept questions again: the paired difference, and what changed since."""

import json
import shutil

import dspy
import pytest
from run_files import change, rows

from questree.common.errors import QuestreeError
from questree.evaluation.identity import signature_fingerprints, versions
from questree.optimize import load
from questree.optimize.recheck import PROMPTS, recheck
from questree.simulate import Traits, simulated_lm


@pytest.fixture
def kept(searched, tmp_path):
    """The folder of a compilation, which may be changed."""
    return shutil.copytree(searched[0], tmp_path / "compiled")


def test_without_an_upgrade_nothing_differs(mini, searched, kept):
    found = recheck(kept / "program", load(kept / "program", retriever=mini.index))
    assert found.before.scores == searched[1].after.scores
    assert [record.id for record in found.after.records] == [record.id for record in found.before.records]
    assert found.after.retrieval == found.before.retrieval  # the records hold all of the gold side
    assert (found.difference.mean, found.difference.low) == (0.0, -found.difference.high)
    assert (found.prompts, found.signatures, found.versions) == ({}, (), {})


def test_another_model_is_compared_question_by_question(mini, kept):
    with dspy.context(lm=simulated_lm([], Traits(malformed=0), cache=False)):  # it knows none of the questions
        found = recheck(kept / "program", load(kept / "program", retriever=mini.index))
    assert found.difference.mean == pytest.approx(found.after.score.mean - found.before.score.mean)
    assert found.difference.mean < 0
    assert found.difference.n == found.before.n
    assert found.p is not None


SET = f"UPDATE facts SET value = ? WHERE name = '{PROMPTS}'"


def test_a_prompt_that_changed_is_shown_as_a_diff_with_what_changed_it(mini, kept, monkeypatch):
    [[held]] = rows(kept, f"SELECT value FROM facts WHERE name = '{PROMPTS}'")
    prompts = json.loads(held)
    before = prompts[0]["messages"][0][1]
    prompts[0]["messages"][0][1] = f"{before}\nAnswer in verse."
    change(kept, (SET, (json.dumps(prompts),)))
    changed = prompts[0]["predictor"]
    upgraded = "questree.optimize.recheck."
    monkeypatch.setattr(
        f"{upgraded}signature_fingerprints",
        lambda program: signature_fingerprints(program) | {changed: {"signature": "S", "fingerprint": "other"}},
    )
    monkeypatch.setattr(f"{upgraded}versions", lambda: versions() | {"dspy": "9.9"})
    found = recheck(kept / "program", load(kept / "program", retriever=mini.index))
    assert list(found.prompts) == [changed]
    assert "-Answer in verse." in found.prompts[changed].splitlines()
    assert found.signatures == (changed,)
    assert list(found.versions) == ["dspy"]
    assert found.versions["dspy"][1] == "9.9"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        *((((SET, (text,))), r"damaged|holds no prompts") for text in ("[", "[1]", '{"a": 1}', '[{"messages": 3}]')),
        (
            "DELETE FROM questions WHERE run = (SELECT number FROM run WHERE name = 'after')",
            "that `questree compile` wrote",
        ),
    ],
)
def test_what_cannot_be_rechecked_is_named(mini, kept, statement, said):
    change(kept, statement)
    with pytest.raises(QuestreeError, match=said):
        recheck(kept / "program", load(kept / "program", retriever=mini.index))
