"""Fetching: what is pinned is asked for, what is written is whole, what trains is not scored."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import published_rows as rows
import pytest

from questree.common.errors import QuestreeError
from questree.common.files import file_hash, in_turn
from questree.data import KNOWN_TASKS, Question, fetch_task, load_task, task_files
from questree.data import task_fetch as module
from questree.retrieval import read_corpus


class Asked(list):
    """What `load_dataset` was asked for; it answers with the rows of each split."""

    def __init__(self, splits: dict[str, list[dict[str, Any]]]) -> None:
        self.splits = splits

    def __call__(self, id: str, config: str | None = None, **options: Any) -> Any:
        from datasets import Dataset

        self.append((id, config, options))
        found = self.splits[options["split"]]
        if found:
            return Dataset.from_list(found)
        others = next(rows for rows in self.splits.values() if rows)
        return Dataset.from_dict({column: [] for column in others[0]})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Stand in for the hub with these splits."""

    def stand_in(**splits: list[dict[str, Any]]) -> Asked:
        asked = Asked(splits)
        monkeypatch.setattr("datasets.load_dataset", asked)
        return asked

    return stand_in


def hotpot(number: int, question: str | None = None) -> dict[str, Any]:
    return {**rows.HOTPOT_ON_THE_HUB, "id": f"h{number}", "question": question or f"Which river is number {number}?"}


def ids(name: str, split: str) -> set[str]:
    return {question.id for question in load_task(name).questions[split]}


def left(data: Path) -> list[str]:
    """What lies in the data folder, without locks."""
    return sorted(str(p.relative_to(data)) for p in data.rglob("*") if p.is_file() and not p.name.endswith(".lock"))


def test_the_pinned_repository_configuration_and_revision_are_asked_for(hub, data: Path) -> None:
    asked = hub(train=[hotpot(1)], validation=[hotpot(2)])
    there = fetch_task("hotpotqa")
    revision = "1908d6afbbead072334abe2965f91bd2709910ab"
    assert asked == [
        ("hotpotqa/hotpot_qa", "distractor", {"split": split, "revision": revision})
        for split in ("validation", "train")
    ]
    assert (there.manifest.hub.id, there.manifest.hub.revision) == ("hotpotqa/hotpot_qa", revision)
    assert there.manifest.counts == {"dev": 1, "train": 1}
    assert (ids("hotpotqa", "train"), ids("hotpotqa", "dev")) == ({"h1"}, {"h2"})


def test_files_and_options_reach_the_builder(hub, data: Path) -> None:
    cells = dict(zip(("number", "kind", "question", "pattern"), rows.TREC.rstrip().split("\t"), strict=True))
    asked = hub(train=[cells], test=[{**cells, "question": "How wide?"}])
    fetch_task("trec")
    id, _, options = asked[0]
    assert id == "csv"
    assert options["data_files"]["test"].endswith("/large2180-test.tsv")
    assert (options["sep"], options["quoting"]) == ("\t", 3)


def test_trecs_options_keep_quotes_and_nulls(tmp_path: Path) -> None:
    import datasets

    path = tmp_path / "test.tsv"
    path.write_text(rows.TREC + "7\tfactoid\tWho?\tnull\n", encoding="utf-8")
    found = datasets.load_dataset(
        "csv", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"), **KNOWN_TASKS["trec"].hub.options
    )
    assert [row["question"] for row in found] == ['How deep is the "Wend"?', "Who?"]
    assert [row["pattern"] for row in found] == [r"\b12\s?feet|null", "null"]


def test_a_second_fetch_asks_nobody_and_says_that_it_is_there(hub, data: Path, monkeypatch) -> None:
    hub(train=[hotpot(1)], validation=[hotpot(2)])
    first = fetch_task("hotpotqa")
    monkeypatch.setattr("datasets.load_dataset", None)
    second = fetch_task("hotpotqa")
    assert (first.new, second.new) == (True, False)
    assert second.manifest == first.manifest


def test_another_pinned_revision_is_only_taken_with_update(hub, data: Path, monkeypatch) -> None:
    hub(train=[hotpot(1)], validation=[hotpot(2)])
    fetch_task("hotpotqa")
    task = KNOWN_TASKS["hotpotqa"]
    monkeypatch.setitem(module.KNOWN_TASKS, "hotpotqa", replace(task, hub=replace(task.hub, revision="f" * 40)))
    with pytest.raises(QuestreeError, match=r"is there from revision 1908d.* pins ffff.*--update"):
        fetch_task("hotpotqa")
    hub(train=[hotpot(1)], validation=[hotpot(3)])
    assert fetch_task("hotpotqa", update=True).manifest.hub.revision == "f" * 40
    assert ids("hotpotqa", "dev") == {"h3"}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            ConnectionError("Couldn't reach it"),
            r"hotpotqa/hotpot_qa cannot be read: the hub cannot be reached .*--from FILE \(hotpot_train_v1",
        ),
        ("not found", r"no hotpotqa/hotpot_qa at revision 1908d"),
        (RuntimeError("Dataset scripts are no longer supported"), "cannot be read: Dataset scripts"),
    ],
)
def test_what_the_hub_refuses_is_said_with_what_to_do(data: Path, monkeypatch, fault: Any, message: str) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        from datasets.exceptions import DatasetNotFoundError

        raise DatasetNotFoundError("gone") if fault == "not found" else fault

    monkeypatch.setattr("datasets.load_dataset", refuse)
    with pytest.raises(QuestreeError, match=message):
        fetch_task("hotpotqa")
    assert left(data) == []


def test_a_repository_with_other_columns_is_refused_with_those_it_lacks(hub, data: Path) -> None:
    hub(validation=[{"id": "1", "question": "Why?", "text": "x"}], train=[])
    with pytest.raises(QuestreeError, match=r"validation, lacks the columns answer, type, .*it has id, question, text"):
        fetch_task("hotpotqa")


def test_the_corpus_holds_each_paragraph_once_under_a_lasting_id(hub, data: Path) -> None:
    hub(train=[hotpot(1)], validation=[hotpot(2), hotpot(3)])
    there = fetch_task("hotpotqa")
    passages = list(read_corpus(there.corpus))
    assert [p.title for p in passages] == ["Larkhall", "Osmund Vale", "Other"]
    assert there.corpus == data / "corpora" / "hotpotqa.jsonl" == load_task("hotpotqa").corpus
    assert there.manifest.passages == 3
    hub(train=[], validation=[hotpot(9)])
    again = list(read_corpus(fetch_task("hotpotqa", update=True).corpus))
    assert [p.id for p in again] == [p.id for p in passages]


def test_a_question_that_is_scored_never_trains(hub, data: Path) -> None:
    same = "Which river  is it?"
    hub(train=[hotpot(1, same.upper()), hotpot(2)], validation=[hotpot(3, same)])
    manifest = fetch_task("hotpotqa").manifest
    assert (ids("hotpotqa", "train"), ids("hotpotqa", "dev")) == ({"h2"}, {"h3"})
    assert manifest.left_out == {"train question that dev has too": 1}


def test_so_many_training_questions_are_kept_the_same_in_any_order(hub, data: Path) -> None:
    training = [hotpot(number) for number in range(50)]
    hub(train=training, validation=[hotpot(99)])
    manifest = fetch_task("hotpotqa", train_limit=10).manifest
    kept = ids("hotpotqa", "train")
    assert (len(kept), manifest.train_limit) == (10, 10)
    assert manifest.left_out == {"train question beyond the 10 that are kept": 40}
    hub(train=training[::-1], validation=[hotpot(99)])
    fetch_task("hotpotqa", train_limit=10, update=True)
    assert ids("hotpotqa", "train") == kept
    fetch_task("hotpotqa", train_limit=20, update=True)
    assert kept < ids("hotpotqa", "train")


def test_without_a_published_dev_some_training_questions_become_it(hub, data: Path) -> None:
    def row(number: int) -> dict[str, Any]:
        return {"question": f"where is number {number}?", "answers": ["Vale"]}

    hub(train=[row(n) for n in range(200)], test=[row(n) for n in range(200, 210)])
    counts = fetch_task("webquestions").manifest.counts
    assert counts["test"] == 10
    assert counts["train"] + counts["dev"] == 200
    assert 40 < counts["dev"] < 80


def test_the_manifest_tells_sources_and_sums(data: Path, published: Callable[..., Path]) -> None:
    file = published("musique_ans_v1.0_dev.jsonl", [rows.MUSIQUE])
    there = fetch_task("musique", files=[file])
    told = json.loads((data / "musique.manifest.json").read_text())
    assert told["read"] == {file.name: file_hash(file)}
    assert told["hub"] is None
    assert told["files"]["musique.jsonl"] == {
        "bytes": there.questions.stat().st_size,
        "sha256": file_hash(there.questions),
    }
    assert told["files"]["corpora/musique.jsonl"]["sha256"] == file_hash(there.corpus)
    assert told["licence"] == "CC BY 4.0"
    fetch_task("musique", files=[file], update=True)
    assert json.loads((data / "musique.manifest.json").read_text()) == told


def test_other_files_and_another_limit_are_only_taken_with_update(data: Path, published: Callable[..., Path]) -> None:
    dev = published("musique_ans_v1.0_dev.jsonl", [rows.MUSIQUE])
    train = published("musique_ans_v1.0_train.jsonl", [{**rows.MUSIQUE, "id": "2hop__8_9", "question": "Who else?"}])
    fetch_task("musique", files=[dev])
    assert not fetch_task("musique", files=[dev]).new
    with pytest.raises(QuestreeError, match=rf"is there from {dev.name}, and not from these files.*--update"):
        fetch_task("musique", files=[train, dev])
    with pytest.raises(QuestreeError, match=r"another limit of training questions \(5000\).*--update"):
        fetch_task("musique", train_limit=10)
    with pytest.raises(QuestreeError, match=r"Cannot read absent\.jsonl"):
        fetch_task("musique", files=["absent.jsonl"])
    assert fetch_task("musique", files=[train, dev], update=True).manifest.counts == {"train": 1, "dev": 1}


@pytest.mark.parametrize("killed_at", range(3))
@pytest.mark.parametrize("before", ["nothing", "an older fetch"])
def test_a_fetch_that_is_killed_before_its_manifest_is_no_task(
    hub, data: Path, monkeypatch, killed_at: int, before: str
) -> None:
    if before == "an older fetch":
        hub(train=[], validation=[hotpot(1)])
        fetch_task("hotpotqa")
    moves: list[str] = []
    real = os.replace

    def killed(source: Any, target: Any) -> None:
        if len(moves) == killed_at:
            raise SystemExit("killed")
        moves.append(str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", killed)
    monkeypatch.setattr(task_files.shutil, "rmtree", lambda *_, **__: None)  # a killed process cleans nothing up
    hub(train=[], validation=[hotpot(2), hotpot(3)])
    with pytest.raises(SystemExit):
        fetch_task("hotpotqa", update=True)
    monkeypatch.undo()
    monkeypatch.setenv("QUESTREE_DATA", str(data))
    with pytest.raises(QuestreeError, match=r"questree fetch hotpotqa"):
        load_task("hotpotqa")
    hub(train=[], validation=[hotpot(2), hotpot(3)])
    assert fetch_task("hotpotqa").new
    assert ids("hotpotqa", "dev") == {"h2", "h3"}
    assert left(data) == ["corpora/hotpotqa.jsonl", "hotpotqa.jsonl", "hotpotqa.manifest.json"]


def test_a_failed_update_leaves_the_older_fetch_as_it_was(hub, data: Path) -> None:
    hub(train=[], validation=[hotpot(1)])
    fetch_task("hotpotqa")
    before = {name: (data / name).read_bytes() for name in left(data)}
    hub(train=[], validation=[hotpot(2), {**hotpot(3), "answer": ""}])
    with pytest.raises(QuestreeError, match="row 2"):
        fetch_task("hotpotqa", update=True)
    assert {name: (data / name).read_bytes() for name in left(data)} == before
    assert ids("hotpotqa", "dev") == {"h1"}


def test_a_fetched_file_of_another_size_is_refused(hub, data: Path) -> None:
    hub(train=[], validation=[hotpot(1)])
    there = fetch_task("hotpotqa")
    there.questions.write_text(there.questions.read_text() + "\n", encoding="utf-8")
    with pytest.raises(QuestreeError, match=r"hotpotqa\.jsonl is damaged: it has .* bytes.*--update"):
        load_task("hotpotqa")


@pytest.mark.parametrize("own", ["hotpotqa.jsonl", "corpora/hotpotqa.jsonl"])
def test_a_file_of_the_users_own_is_never_replaced(hub, data: Path, own: str) -> None:
    (data / own).parent.mkdir(exist_ok=True)
    (data / own).write_text("mine", encoding="utf-8")
    hub(train=[], validation=[hotpot(1)])
    with pytest.raises(QuestreeError, match=r"hotpotqa\.jsonl is there, and was not fetched"):
        fetch_task("hotpotqa", update=True)
    assert (data / own).read_text(encoding="utf-8") == "mine"


def test_names_that_cannot_be_fetched_are_said_so(data: Path) -> None:
    with pytest.raises(QuestreeError, match=r"no known task 'hotpot'\. Did you mean 'hotpotqa'"):
        fetch_task("hotpot")
    with pytest.raises(QuestreeError, match="mini is not fetched: bundled"):
        fetch_task("mini")


def test_without_a_data_folder_the_cache_has_one(hub, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("QUESTREE_DATA", raising=False)
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    hub(train=[], validation=[hotpot(1)])
    assert fetch_task("hotpotqa").questions == tmp_path / "tasks" / "hotpotqa.jsonl"
    assert isinstance(load_task("hotpotqa").split("dev")[0], Question)


def test_a_fetch_that_waits_for_another_one_says_so(tmp_path, caplog):
    lock = tmp_path / "lock"
    with in_turn(lock, "fetching hotpotqa"):
        waiting = threading.Thread(target=lambda: in_turn(lock, "fetching hotpotqa").__enter__())
        waiting.start()
        while "Another process is fetching hotpotqa: waiting" not in caplog.text:
            assert waiting.is_alive()
    waiting.join()


def test_the_passages_of_a_task_come_from_their_own_configuration_of_the_hub(monkeypatch, data: Path) -> None:
    from datasets import Dataset

    asked = []

    def load(id: str, config: str, **options: Any) -> Any:
        asked.append((id, config, options))
        return Dataset.from_list([rows.PHANTOMWIKI] if config == "question-answer" else rows.PHANTOMWIKI_ARTICLES)

    monkeypatch.setattr("datasets.load_dataset", load)
    there = fetch_task("phantomwiki")
    pinned = {"split": "depth_20_size_500_seed_1", "revision": "9369f9c64655f4e8146afee75ae5d3e3a95d7df5"}
    world = "kilian-group/phantom-wiki-v1"
    assert asked == [(world, "question-answer", pinned), (world, "text-corpus", pinned)]
    assert (there.manifest.counts, there.manifest.passages) == ({"dev": 1}, 2)
