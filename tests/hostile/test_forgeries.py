"""Forged artifacts, with their checksums put right: each loads as a harmless program, or is refused by the file's name.

A file may set prompts, demonstrations and how the LM samples. Whatever else it says, no other address gets the user's
key and questions, no other file is read, and nothing hangs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from tiny_world import QUESTIONS, SURE

from questree.common import json_files
from questree.common.errors import QuestreeError
from questree.common.files import file_hash
from questree.common.manifests import checksum_of
from questree.optimize import artifact, load, save
from questree.optimize.artifact_format import LMSettings
from questree.optimize.composed import Lesson, NearestDemonstrations
from questree.programs import build
from questree.simulate import simulated_lm

PREDICTOR = "step_by_step_answer.answer"
DEMO = {"question": "q", "answer": "a", "final_content": "c", "augmented": True}
EVIL = "http://127.0.0.1:9/v1"


def seal(folder: Path) -> Path:
    """Put the checksums right, as someone does who knows them, and leave the rest of the manifest to the letter."""
    text = (folder / "questree.json").read_text(encoding="latin-1")
    try:
        for name, checksum in json.loads(text)["files"].items():
            if name in ("program.json", "lessons.json") and (folder / name).is_file():
                text = text.replace(checksum, file_hash(folder / name))
        manifest = json.loads(text)
        text = text.replace(manifest["checksum"], checksum_of(manifest))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return folder  # nothing to seal
    (folder / "questree.json").write_text(text, encoding="latin-1")
    return folder


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


# Texts of JSON that stand at a place where they do not belong; of the wrong kind, too large, or of no sense.
FORGED = [
    *("null", "true", "0", "-1", "1.5", '"x"', '""', "[]", "{}", "[[]]", '[null]', '{"": null}', '["x", 1]'),
    *("NaN", "Infinity", "-Infinity", "1e999", "9" * 30, "9" * 5000, "-" + "9" * 19),
    *("[" * 100 + "]" * 100, "[" * 100_000 + "]" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "[" * 2000),
    *('{"a": 1, "a": 2}', r'"\ud800"', r'{"\udfff": 1}', '"\x00"', r'"\u0000"', "'x'", "undefined", "1,", '"'),
    *(json.dumps({"api_base": EVIL}), '["../program.json"]', '"../../etc/passwd"', '["program.json", "program.json"]'),
    json.dumps('<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'),
]  # fmt: skip


def places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Return the path of every value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, *path, key)


def forgeries(content: Any) -> Iterator[tuple[str, str]]:
    """Return what was done, and the text: at each place every forged text, nothing, a twin, and a stranger."""
    for path in places(content):
        *above, key = path
        for text in FORGED:
            yield f"{path}: {text[:40]}", _replaced(content, path, text)
        forged = json.loads(json.dumps(content))
        del _at(forged, above)[key]
        yield f"{path} is missing", json.dumps(forged)
        if isinstance(key, str):
            value = json.dumps(_at(content, path))
            yield f"{path} stands twice", _replaced(content, path, f"{value}, {json.dumps(key)}: {value}")
            for stranger in ("api_base", "__class__", ""):
                beside = f'{value}, {json.dumps(stranger)}: "{EVIL}"'
                yield f"{stranger!r} beside {path}", _replaced(content, path, beside)


def _at(value: Any, path: tuple[str | int, ...] | list[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _replaced(content: Any, path: tuple[str | int, ...], text: str) -> str:
    *above, key = path
    forged = json.loads(json.dumps(content))
    _at(forged, above)[key] = "@forged@"
    return json.dumps(forged).replace('"@forged@"', text)


def whole(text: str) -> Iterator[tuple[str, bytes]]:
    """Return the whole file in other encodings, and as what is no JSON."""
    for encoding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"):
        yield encoding, text.encode(encoding)
    yield "latin-1", text.replace("q", "ü").encode("latin-1")
    for forged in (*FORGED, "", " ", "\n", "null null", text + text, text.replace("{", "{{"), text + "\0"):
        yield forged[:40], forged.encode()
    for end in range(1, len(text), len(text) // 12):
        yield f"cut at {end}", text[:end].encode()
    yield "bytes of no text", bytes(range(256))


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
        seal(folder)
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
        check_harmless(program, what)
        return True
    assert str(folder) in said, what
    assert "\n" not in said, what
    return False


def check_harmless(program: Any, what: str) -> None:
    """A loaded program differs from one of the code in its prompts, and in how it samples; and it can be asked."""
    as_coded = build("cot", {}).predictors()[0]
    for predictor in program.predictors():
        assert predictor.lm is None, what
        assert predictor.config.keys() <= LMSettings.model_fields.keys(), what
        assert vars(predictor).keys() == vars(as_coded).keys(), what
    with dspy.context(lm=simulated_lm(QUESTIONS, SURE, cache=False), adapter=None):
        assert program(question=QUESTIONS[0].question).spent.calls >= 1, what


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
    return seal(folder)


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


NO_FILES = {
    "a link": lambda place, aside: place.symlink_to(aside),
    "a dangling link": lambda place, aside: place.symlink_to(aside.with_name("nowhere")),
    "a link to a device": lambda place, aside: place.symlink_to("/dev/zero"),
    "a pipe": lambda place, aside: os.mkfifo(place),
    "a folder": lambda place, aside: place.mkdir(),
}


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("file", ["questree.json", "program.json", "lessons.json"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_regular_file_is_neither_followed_nor_waited_for(kind, file, copy):
    aside = copy.with_name(file)
    (copy / file).rename(aside)  # the same content, outside of the folder
    NO_FILES[kind](copy / file, aside)
    with pytest.raises(QuestreeError, match=rf"{file}.*no regular file"):
        load(copy)


NAMES = ["/etc/passwd", "../program.json", "a/../program.json", "./program.json", "sub/program.json", "program.json\0"]
NAMES += [
    "program.json\n",
    "..",
    ".",
    "",
    "C:program.json",
    "a\\program.json",
    "questree.json",
    "program.pkl",
    "/dev/zero",
]


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
