"""Forged artifacts, with their checksums put right: each loads as a harmless program, or is refused by the file's name.

A file may set prompts, demonstrations and how the LM samples. Whatever else it says, no other address gets the user's
key and questions, no other file is read, and nothing hangs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import dspy
import pytest
from reliability.forged_folders import KINDS, check_harmless, forge_folders, seal
from reliability.forging import EVIL, IRREGULAR, NAMES, forgeries, whole

from questree.common import json_files
from questree.common.errors import QuestreeError
from questree.common.files import file_hash
from questree.optimize import artifact, load, save
from questree.programs import build
from questree.programs.composed import Lesson, NearestDemonstrations

PREDICTOR = "step_by_step_answer.answer"
DEMO = {"question": "q", "answer": "a", "final_content": "c", "augmented": True}


@pytest.fixture(scope="module")
def genuine(tmp_path_factory) -> Path:
    """A program of one call, with a demonstration of its own and one that it chooses by question."""
    program = build("cot", {})
    program.predictors()[0].demos = [dspy.Example(DEMO)]
    lesson = Lesson(inputs={"question": "Who?"}, demonstrations={PREDICTOR: [{"question": "q", "answer": "a"}]})
    return save(NearestDemonstrations(program, [lesson], 1), tmp_path_factory.mktemp("genuine") / "program")


@pytest.fixture
def copy(genuine, tmp_path) -> Path:
    return Path(shutil.copytree(genuine, tmp_path / "program"))


@pytest.mark.parametrize("file", ["questree.json", "program.json", "lessons.json"])
def test_a_forgery_is_refused_by_name_or_loads_as_a_harmless_program(file, genuine, tmp_path):
    content = json.loads((genuine / file).read_text())
    everywhere = [(what, text.encode()) for what, text in forgeries(content)]
    tried = random.Random(file).sample(everywhere, 300) + list(whole((genuine / file).read_text()))
    loaded = 0
    for what, forged in tried:
        folder = tmp_path / "program"
        shutil.copytree(genuine, folder)
        (folder / file).write_bytes(forged)
        seal(folder, "questree.json", file)
        loaded += load_forged(folder, what)
        shutil.rmtree(folder)
    assert 0 < loaded < len(tried) / 2  # some of it changes nothing that matters: a text, or a fact to show


def load_forged(folder: Path, what: str) -> bool:
    """Return whether it loads."""
    try:
        program = load(folder)
    except QuestreeError as error:
        said = str(error)
    else:
        check_harmless(program)
        return True
    assert str(folder) in said, what
    assert "\n" not in said, what
    return False


HARMFUL = {
    "api_base": EVIL,
    "base_url": EVIL,
    "api_key": "sk-theirs",
    "headers": {"Authorization": "Bearer theirs"},
    "extra_headers": {"X": "y"},
    "extra_body": {"tools": []},
    "model": "openai/theirs",
    "model_list": [],
    "custom_llm_provider": "theirs",
    "timeout": 1e6,
    "cache": False,
    "tools": [],
    "lm": {"model": "theirs"},
}


def change(folder: Path, file: str, how: Any) -> Path:
    """Change a file as JSON, and seal the folder."""
    content = json.loads((folder / file).read_text())
    how(content)
    (folder / file).write_text(json.dumps(content))
    seal(folder, "questree.json", file)
    return folder


@pytest.mark.parametrize("setting", HARMFUL)
def test_a_setting_that_leads_elsewhere_is_refused_by_name(setting, copy):
    change(copy, "program.json", lambda state: state[PREDICTOR].update(config={setting: HARMFUL[setting]}))
    with pytest.raises(QuestreeError, match=rf"program\.json .*\({PREDICTOR}\.config\.{setting}: nothing of this name"):
        load(copy)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("lm", {"model": "openai/x", "api_base": EVIL}),
        ("lm", "openai/x"),
        ("traces", [{"x": 1}]),
        ("train", [{"question": "q"}]),
        ("fields", {"answer": {"criteria": None}}),
        ("extended_signature", {}),
        ("callbacks", []),
        ("forward", "x"),
        ("stage", "x"),
        ("__class__", "x"),
        ("__dict__", {"lm": EVIL}),
    ],
)
def test_a_part_that_is_neither_prompt_nor_demonstration_is_refused_by_name(part, value, copy):
    change(copy, "program.json", lambda state: state[PREDICTOR].update({part: value}))
    with pytest.raises(QuestreeError, match=rf"program\.json .*\({PREDICTOR}\.{part}: nothing of this name"):
        load(copy)


@pytest.mark.parametrize(
    ("setting", "value"), [("temperature", 9), ("temperature", "hot"), ("n", 10**6), ("max_tokens", 0), ("seed", 1.5)]
)
def test_a_harmless_setting_has_bounds(setting, value, copy):
    change(copy, "program.json", lambda state: state[PREDICTOR].update(config={setting: value}))
    with pytest.raises(QuestreeError, match=rf"{PREDICTOR}\.config\.{setting}: Input should be"):
        load(copy)


def test_other_predictors_and_other_fields_are_refused_by_name(copy, genuine, tmp_path):
    change(copy, "program.json", lambda state: state.update(other=state[PREDICTOR]))
    with pytest.raises(QuestreeError, match="other is no predictor of cot"):
        load(copy)
    change(copy, "program.json", lambda state: [state.pop("other"), state.pop(PREDICTOR)])
    with pytest.raises(QuestreeError, match=f"{PREDICTOR} is missing"):
        load(copy)
    second = Path(shutil.copytree(genuine, tmp_path / "second"))
    change(second, "program.json", lambda state: state[PREDICTOR]["signature"]["fields"].pop())
    with pytest.raises(QuestreeError, match=f"{PREDICTOR} has 4 fields, and not 3"):
        load(second)
    third = Path(shutil.copytree(genuine, tmp_path / "third"))
    change(third, "lessons.json", lambda lessons: lessons[0]["demonstrations"].update(other=[]))
    with pytest.raises(QuestreeError, match=r"lessons\.json .*other is no predictor"):
        load(third)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("file", ["questree.json", "program.json", "lessons.json"])
@pytest.mark.parametrize("kind", IRREGULAR)
def test_what_is_no_regular_file_is_neither_followed_nor_waited_for(kind, file, copy):
    aside = copy.with_name(file)
    (copy / file).rename(aside)  # the same content, outside of the folder
    IRREGULAR[kind](copy / file, aside)
    with pytest.raises(QuestreeError, match=rf"{file}.*no regular file"):
        load(copy)


@pytest.mark.parametrize("name", NAMES)
def test_a_member_is_a_file_of_this_folder(name, copy):
    (copy.parent / "program.json").write_bytes((copy / "program.json").read_bytes())
    checksum = file_hash(copy / "program.json")

    def rename(manifest: dict[str, Any]) -> None:
        manifest["members"] = [name]
        manifest["files"][name] = checksum

    change(copy, "questree.json", rename)
    with pytest.raises(QuestreeError, match=r"questree\.json is damaged or foreign \((members|files)"):
        load(copy)


def test_files_have_a_bound_together(copy, monkeypatch):
    load(copy)
    monkeypatch.setattr(artifact, "LARGEST", (copy / "lessons.json").stat().st_size)
    with pytest.raises(QuestreeError, match=r"program\.json .*larger than 0 bytes"):
        load(copy)
    monkeypatch.setattr(json_files, "LARGEST", 100)
    with (copy / "questree.json").open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(QuestreeError, match=r"questree\.json .*larger than"):
        load(copy)


def test_a_folder_that_is_none_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "nowhere", tmp_path / "file", tmp_path / ("x" * 300), f"{tmp_path}/\0"):
        with pytest.raises(QuestreeError):
            load(place)


def test_texts_that_become_images_are_refused_and_never_saved(copy, tmp_path):
    mark = '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'
    change(copy, "lessons.json", lambda lessons: lessons[0]["demonstrations"][PREDICTOR][0].update(question=mark))
    with pytest.raises(QuestreeError, match=r"lessons\.json .*images"):
        load(copy)
    program = build("cot", {})
    program.predictors()[0].demos = [dspy.Example(question=mark, answer="\ud800", final_content="c")]
    demo = load(save(program, tmp_path / "saved")).predictors()[0].demos[0]
    assert demo.question == mark.replace("<CUSTOM", "< CUSTOM")
    assert demo.answer == "?"


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
def test_a_forged_folder_of_any_kind_is_refused_by_name_or_harmless(tmp_path):
    found = forge_folders(25, 1, tmp_path)
    assert found.tried.keys() == KINDS.keys()
    assert found.wrong == []
    assert 0.7 < found.refused / found.tried.total() < 1
