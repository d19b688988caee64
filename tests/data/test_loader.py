"""Tasks by name and by path."""

import json
from pathlib import Path

import pytest

from questree.common.errors import QuestreeError
from questree.data import BUNDLED, DATA_VARIABLE, KNOWN_TASKS, load_task, task_names
from questree.metrics import normalise_title


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with a file of two origins, and the corpus of one."""
    rows = [
        {"id": n, "task": ["musique", "hotpotqa"][n % 2], "question": f"Question {n}?", "answers": ["Ada"]}
        for n in range(120)
    ]
    (tmp_path / "both.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "musique.jsonl").write_text("{}", encoding="utf-8")
    return tmp_path


def ids(task, split: str) -> list[str]:
    return [question.id for question in task.questions[split]]


def test_a_name_is_found_in_the_folder_given_or_in_the_environments(folder: Path, monkeypatch) -> None:
    given = load_task("both", data_dir=folder)
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    assert load_task("both") == given
    assert load_task(folder / "both.jsonl") == given
    assert task_names() == ["mini", "mini-lists", "both"]


def test_a_file_of_a_tasks_name_is_meant_only_as_a_path(folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("mini", "hotpotqa"):
        (folder / name).write_bytes((folder / "both.jsonl").read_bytes())
        assert len(load_task(f"./{name}").questions["dev"]) == len(load_task("both.jsonl").questions["dev"])
    assert load_task("mini").corpus is not None
    with pytest.raises(QuestreeError, match="questree fetch hotpotqa"):
        load_task("hotpotqa")


def test_splits_do_not_move_with_seed_or_limit(folder: Path) -> None:
    whole, other = load_task("both", data_dir=folder), load_task("both", data_dir=folder, seed=7)
    for split in ("train", "dev", "test"):
        assert sorted(ids(whole, split)) == sorted(ids(other, split))
        assert ids(whole, split) != ids(other, split)
    assert sum(map(len, whole.questions.values())) == 120


def test_a_smaller_limit_is_the_beginning_of_a_larger_one(folder: Path) -> None:
    whole, ten, five = (load_task("both", data_dir=folder, limit=n, seed=3) for n in (None, 10, 5))
    assert ids(five, "dev") == ids(ten, "dev")[:5] == ids(whole, "dev")[:5]
    assert len(ids(ten, "dev")) == 10


def test_one_split_alone(folder: Path) -> None:
    task = load_task("both", data_dir=folder, split="dev")
    assert list(task.questions) == ["dev"]
    assert all(question.split == "dev" for question in task.split("dev"))


def test_an_origin_keeps_its_questions_and_finds_its_corpus(folder: Path) -> None:
    task = load_task("both:musique", data_dir=folder)
    assert task.name == "both:musique"
    assert {question.task for split in task.questions.values() for question in split} == {"musique"}
    assert sum(map(len, task.questions.values())) == 60
    assert task.corpus == folder / "corpora" / "musique.jsonl"
    assert load_task(f"{folder / 'both.jsonl'}:musique").corpus == task.corpus
    assert load_task("both", data_dir=folder).corpus is None
    assert load_task("both:hotpotqa", data_dir=folder).corpus is None


def test_a_corpus_that_is_given_wins_and_must_exist(folder: Path) -> None:
    other = folder / "other.jsonl"
    with pytest.raises(QuestreeError, match=r"corpus .*other\.jsonl does not exist"):
        load_task("both:musique", data_dir=folder, corpus=other)
    other.write_text("{}", encoding="utf-8")
    assert load_task("both:musique", data_dir=folder, corpus=other).corpus == other


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        (
            "bot",
            {},
            r"no task 'bot'\. Did you mean 'both'\? Known here: mini, mini-lists, both\. .* put bot\.jsonl into",
        ),
        ("hotpotqa", {}, r"'hotpotqa' do not come with.*: questree fetch hotpotqa\. Or put a hotpotqa\.jsonl"),
        ("both:fever", {}, r"no questions of 'fever'; it has those of: hotpotqa, musique"),
        ("both", {"split": "validation"}, r"no split 'validation'.*train, dev, test"),
        ("both", {"limit": 0}, r"limit of 0"),
        ("both", {"data_dir": "nowhere"}, r"data folder nowhere does not exist"),
        ("minni", {"data_dir": None}, rf"Known here: mini, mini-lists\. .*cache.tasks \({DATA_VARIABLE} names another"),
        ("squad", {"data_dir": None}, r"questree fetch squad\. .*QUESTREE_DATA"),
    ],
)
def test_what_does_not_exist_is_said_with_what_does(folder: Path, name: str, more: dict, message: str) -> None:
    with pytest.raises(QuestreeError, match=message):
        load_task(name, **{"data_dir": folder, **more})


@pytest.mark.parametrize("name", sorted(set(KNOWN_TASKS) - {*BUNDLED, "hotpotqa-fullwiki"}))
def test_every_real_file_loads_whole(shared_data: Path, name: str) -> None:
    if not (shared_data / f"{name}.jsonl").is_file():
        pytest.skip(f"no questions of {name} in {shared_data}")
    task = load_task(name, data_dir=shared_data)
    questions = [question for split in task.questions.values() for question in split]
    with (shared_data / f"{name}.jsonl").open(encoding="utf-8") as lines:
        assert len(questions) == sum(1 for _ in lines)
    assert {question.style for question in questions} == {task.style}
    splits: dict[str, set[str]] = {}
    for question in questions:
        splits.setdefault(question.question.lower(), set()).add(question.split)
    assert all(len(in_splits) == 1 for in_splits in splits.values())


@pytest.mark.parametrize("origin", ["musique", "hotpotqa", "2wikimultihopqa"])
@pytest.mark.parametrize("name", ["recorded:{}", "{}"])
def test_gold_passages_stand_in_the_corpus_that_is_found(shared_data: Path, name: str, origin: str) -> None:
    task = load_task(name.format(origin), data_dir=shared_data)
    assert task.corpus == shared_data / "corpora" / f"{origin}.jsonl"
    with task.corpus.open(encoding="utf-8") as lines:
        titles = {normalise_title(json.loads(line)["title"]) for line in lines}
    for split in task.questions.values():
        for question in split:
            assert {normalise_title(title) for title in question.gold_titles} <= titles
