"""Forged folders, with their checksums put right: each is refused by the file's name, or what it holds is harmless.

A file may set prompts, demonstrations and how the LM samples. Whatever else it says, no other address gets the user's
key and questions, no other file is read, and nothing hangs.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from reliability.forgeries import EVIL, IRREGULAR, KINDS, PREDICTOR, forge_folders, make_program, put_irregular, seal

from questree.common.errors import QuestreeError
from questree.optimize import load, save
from questree.programs import build

FILE = "questree.json"


@pytest.fixture(scope="module")
def genuine(tmp_path_factory) -> Path:
    return make_program(tmp_path_factory.mktemp("genuine") / "program")


@pytest.fixture
def copy(genuine, tmp_path) -> Path:
    return Path(shutil.copytree(genuine, tmp_path / "program"))


@pytest.mark.parametrize("times", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_a_forged_folder_of_any_kind_is_refused_by_name_or_harmless(times, tmp_path):
    found = forge_folders(times, 1, tmp_path)
    assert found.wrong == []
    assert found.tried.keys() == KINDS.keys()
    assert 0.7 < found.found["refused"] / found.tried.total() < 1  # some changes a text, or a fact to show


MARK = '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'
HARMFUL = ("api_base", "base_url", "api_key", "headers", "extra_body", "model", "timeout", "cache", "tools", "lm")
NO_PART = {
    **{"lm": {"model": "openai/x", "api_base": EVIL}, "traces": [{"x": 1}], "train": [{"question": "q"}]},
    **{"extended_signature": {}, "forward": "x", "__class__": "x"},
}
OUT_OF_BOUNDS = {"temperature": 9, "n": 10**6, "max_tokens": 0, "seed": 1.5}
OF_PREDICTOR = [
    *((f"config.{name}", {"config": {name: EVIL}}, "nothing of this name") for name in HARMFUL),
    *((name, {name: value}, "nothing of this name") for name, value in NO_PART.items()),
    *((f"config.{name}", {"config": {name: value}}, "Input should be") for name, value in OUT_OF_BOUNDS.items()),
]


def first(state: Any) -> Any:
    return state["members"][0]


def of_predictor(changed: Any) -> Callable[[Any], None]:
    return lambda state: first(state)[PREDICTOR].update(changed)


def of_lesson(changed: Any) -> Callable[[Any], None]:
    return lambda state: state["lessons"][0]["demonstrations"].update(changed)


CHANGES: dict[str, tuple[Callable[[Any], object], str]] = {
    **{place: (of_predictor(new), rf"{PREDICTOR}\.{place}: {says}") for place, new, says in OF_PREDICTOR},
    "another predictor": (
        lambda state: state["members"][0].update(other=state["members"][0][PREDICTOR]),
        "no predictor",
    ),
    "no predictor": (lambda state: first(state).pop(PREDICTOR), f"{PREDICTOR} is missing"),
    "other fields": (lambda state: first(state)[PREDICTOR]["signature"]["fields"].pop(), "4 fields, and not 3"),
    "a lesson for another": (of_lesson({"other": []}), "other is no pred"),
    "an image": (of_lesson({PREDICTOR: [{"question": MARK, "answer": "a"}]}), "images"),
    "no k": (lambda state: state.update(k=None), "k is missing"),
    "a member": (lambda state: state["members"].append(first(state)), "nearest has 2 members"),
}


@pytest.mark.parametrize(("how", "says"), CHANGES.values(), ids=CHANGES)
def test_what_leads_elsewhere_or_does_not_belong_to_the_program_is_refused_by_name(how, says, copy):
    content = json.loads((copy / FILE).read_text())
    how(content["state"])
    (copy / FILE).write_text(json.dumps(content))
    seal(copy, FILE, FILE)
    with pytest.raises(QuestreeError, match=rf"questree\.json .*{says}"):
        load(copy)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("kind", IRREGULAR)
def test_what_is_no_regular_file_is_neither_followed_nor_waited_for(kind, copy):
    put_irregular(copy, FILE, IRREGULAR[kind])
    with pytest.raises(QuestreeError, match=rf"{FILE}.*no regular file"):
        load(copy)


def test_a_file_has_a_bound(copy):
    with (copy / FILE).open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(QuestreeError, match=r"questree\.json .*larger than"):
        load(copy)


def test_a_folder_that_is_none_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "nowhere", tmp_path / "file", tmp_path / ("x" * 300), f"{tmp_path}/\0"):
        with pytest.raises(QuestreeError):
            load(place)


def test_texts_that_become_images_are_never_saved(tmp_path):
    program = build("cot", {})
    program.predictors()[0].demos = [dspy.Example(question=MARK, answer="\ud800", final_content="c")]
    demo = load(save(program, tmp_path / "saved")).predictors()[0].demos[0]
    assert demo.question == MARK.replace("<CUSTOM", "< CUSTOM")
    assert demo.answer == "?"
