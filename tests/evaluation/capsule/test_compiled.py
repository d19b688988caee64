"""Runs of compiled programs are packed with their prompts, which are trusted no more than those of a file."""

import json
from pathlib import Path

import dspy
import pytest
from mini_task import Mini
from pydantic import ValidationError

from questree.common.errors import QuestreeError
from questree.evaluation import evaluate
from questree.evaluation.capsule import pack, replay
from questree.evaluation.stored_runs import open_runs
from questree.programs import PROGRAMS, Program, SearChain
from questree.programs.composed import Lesson, Majority, NearestDemonstrations
from questree.programs.program import restore_names, signature_names
from questree.programs.states import CompiledState, compiled_state

LESSON = Lesson(inputs={"question": "Who?"}, demonstrations={"chain_of_query.plan": [{"question": "Who was it?"}]})


def packed(mini: Mini, program: Program, folder: Path) -> Path:
    """Ask a program two questions, and pack the run; return the capsule."""
    evaluate(program, mini.dev[:2], mini.metric, out=folder / "run")
    pack([folder / "run"], folder / "study.capsule")
    return folder / "study.capsule"


@pytest.mark.parametrize("form", ["single", "nearest", "majority"])
def test_a_compiled_program_is_replayed_with_its_prompts(mini, bootstrapped, form, tmp_path):
    one, other = bootstrapped.deepcopy(), bootstrapped.deepcopy()
    for _, predictor in other.named_predictors():
        predictor.demos, predictor.signature = [], predictor.signature.with_instructions("Do it otherwise.")
    restore_names(other, signature_names(one))
    program = {"single": one, "majority": Majority([one, other])}.get(form, NearestDemonstrations(other, [LESSON], 1))
    capsule = packed(mini, program, tmp_path)
    assert [run.environment.state.form for run in open_runs(capsule)] == [form]
    [replayed] = replay(capsule)
    assert [question.differences for question in replayed.questions] == [(), ()]


def test_a_compiled_program_of_another_version_is_refused_by_name(mini, bootstrapped, tmp_path, monkeypatch):
    capsule = packed(mini, bootstrapped, tmp_path)

    class Newer(SearChain):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            self.doubt = dspy.Predict("question -> doubt")

    monkeypatch.setitem(PROGRAMS, "searchain", Newer)
    with pytest.raises(QuestreeError, match="run: its compiled program does not fit this version: doubt is missing"):
        replay(capsule)


def test_a_compiled_program_from_a_stranger_names_no_model_and_no_file(bootstrapped):
    state = json.loads(compiled_state(bootstrapped).model_dump_json())
    part = state["members"][0]["chain_of_query.plan"]
    for changed in ({"lm": {"model": "x", "api_base": "http://x"}}, {"signature": {**part["signature"], "x": 1}}):
        with pytest.raises(ValidationError):
            CompiledState.model_validate({**state, "members": [{"draft": {**part, **changed}}]})
    part["demos"] = [{"question": "<CUSTOM-TYPE-START>>"}]
    with pytest.raises(ValidationError, match="mark for images and files"):
        CompiledState.model_validate({**state, "members": [{"draft": part}]})
