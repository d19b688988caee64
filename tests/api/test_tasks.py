"""questree list tasks, questree fetch, and what follows from them."""

import json
import logging
from pathlib import Path

import published_rows as rows
import pytest

from questree.common.errors import QuestreeError
from questree.data import KNOWN_TASKS
from questree.parts import Parts
from questree.settings import run_settings


@pytest.fixture
def data(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of the environment, empty."""
    folder = workplace / "data"
    folder.mkdir()
    monkeypatch.setenv("QUESTREE_DATA", str(folder))
    return folder


@pytest.fixture
def musique(workplace: Path) -> Path:
    """A published file with one question."""
    path = workplace / "musique_ans_v1.0_dev.jsonl"
    path.write_text(json.dumps(rows.MUSIQUE) + "\n", encoding="utf-8")
    return path


def row_of(table: str, name: str) -> str:
    return next(line for line in table.splitlines() if line.split()[:1] == [name])


def test_every_task_is_listed_with_what_there_is_to_know(questree, data: Path, musique: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "220")
    questree("fetch musique --from", musique).done()
    for own in ("nq", "mine"):
        (data / f"{own}.jsonl").write_text("{}", encoding="utf-8")
    listed = questree("list tasks").done().out
    for name in KNOWN_TASKS:
        assert row_of(listed, name)
    hotpotqa = row_of(listed, "hotpotqa")
    for cell in ("hotpotqa/hotpot_qa", "90,447 / 7,405 / -", "cover-em", "short", "its own paragraphs", "CC BY-SA 4.0"):
        assert cell in hotpotqa
    assert "Wikipedia 2017 abstracts" in row_of(listed, "hotpotqa-fullwiki")
    for name, here in {"musique": "fetched", "nq": "your file", "mine": "your file"}.items():
        assert row_of(listed, name).rstrip().endswith(here)
    assert "hotpotqa: searchain, tree-of-reviews, blendfilter" in listed


def test_fetch_says_what_it_got_and_which_command_is_next(questree, data: Path, musique: Path) -> None:
    first = questree("fetch musique --from", musique).done().out
    assert "1 dev; from musique_ans_v1.0_dev.jsonl; CC BY 4.0" in first
    assert f"3 passages; next: questree index {data}/corpora/musique.jsonl --out indexes/musique" in first
    assert "is there" not in first
    assert "is there" in questree("fetch musique").out
    questree(f"index {data}/corpora/musique.jsonl --out index --kind bm25").done()
    assert "simulated" in questree("evaluate direct --task musique:searchain --retriever index").done().out


def test_a_task_without_paragraphs_names_its_corpus(questree, data: Path, workplace: Path) -> None:
    (workplace / "trex-dev-kilt.jsonl").write_text(json.dumps(rows.TREX), encoding="utf-8")
    out = questree("fetch trex --from trex-dev-kilt.jsonl").out
    assert "answered from DPR passages; next: get https://dl.fbaipublicfiles.com/dpr" in out
    assert "questree index psgs_w100.tsv --out indexes/trex" in out


def test_of_several_splits_those_that_a_file_lacks_are_left_out(workplace: Path, caplog) -> None:
    rows_of_test = [{"id": f"q{n}", "question": f"Who {n}?", "answers": ["Ada"], "split": "test"} for n in range(2)]
    (file := workplace / "own.jsonl").write_text("\n".join(map(json.dumps, rows_of_test)), encoding="utf-8")
    parts = Parts(run_settings(task=str(file)))
    with caplog.at_level(logging.WARNING):
        assert [one.id for one in parts.examples("test", None)] == [
            one.id for one in parts.examples("train, dev,test", None)
        ]
    assert caplog.messages == ["own has no questions in split train, dev; the others are asked."]
    for named, missing in {"train": "train", "train,dev": "train", "test,dew": "dew"}.items():
        with pytest.raises(QuestreeError, match=f"no questions in split '{missing}'; it has: test"):
            parts.examples(named, None)
