"""The papers' samples by name."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import published_rows as rows
import pytest

from questree.common.errors import QuestreeError
from questree.data import KNOWN_TASKS, fetch_task, load_task
from questree.data.tasks import Sample
from questree.evaluation.comparison.published import published as figures


@pytest.fixture
def hotpotqa(data: Path, published: Callable[..., Path]) -> None:
    """650 development questions, fetched."""
    dev = [
        {**rows.HOTPOT, "_id": f"h{n}", "question": f"Which river is number {n}?", "context": []} for n in range(650)
    ]
    fetch_task("hotpotqa", files=[published("hotpot_dev_distractor_v1.json", dev)])


def ids(name: str, split: str = "dev", **more: Any) -> list[str]:
    return [question.id for question in load_task(name, **more).split(split)]


def test_the_first_500_are_the_first_of_the_published_order(hotpotqa) -> None:
    assert set(ids("hotpotqa:tree-of-reviews")) == {f"h{n}" for n in range(500)}
    assert ids("hotpotqa:tree-of-reviews", limit=5) == ids("hotpotqa:tree-of-reviews")[:5]
    assert load_task("hotpotqa:blendfilter").name == "hotpotqa:blendfilter"


def test_the_whole_development_set_is_searchains_of_hotpotqa(hotpotqa) -> None:
    assert len(ids("hotpotqa:searchain")) == 650


def test_a_drawn_sample_hangs_on_ids_alone(hotpotqa, data: Path, monkeypatch) -> None:
    samples = {"drawn": Sample("a paper", drawn=100)}
    monkeypatch.setitem(KNOWN_TASKS, "hotpotqa", replace(KNOWN_TASKS["hotpotqa"], samples=samples))
    drawn = set(ids("hotpotqa:drawn"))
    assert len(drawn) == 100
    assert set(ids("hotpotqa:drawn", seed=9)) == drawn
    assert ids("hotpotqa:drawn", seed=9) != ids("hotpotqa:drawn")
    lines = (data / "hotpotqa.jsonl").read_text().splitlines(keepends=True)
    (data / "hotpotqa.jsonl").write_text("".join(lines[::-1]))
    assert set(ids("hotpotqa:drawn")) == drawn
    assert drawn != {f"h{n}" for n in range(100)}


def test_strategyqas_500_never_train_and_its_big_bench_form_leaves_training_out(
    data: Path, published: Callable[..., Path]
) -> None:
    all_of_it = [
        {**rows.STRATEGYQA, "qid": f"s{n}", "question": f"Is {n} a number?", "evidence": []} for n in range(900)
    ]
    fetch_task("strategyqa", files=[published("strategyqa_train.json", all_of_it)])
    assert set(ids("strategyqa:blendfilter")) == {f"s{n}" for n in range(500)} == set(ids("strategyqa", "dev"))
    trains = set(ids("strategyqa", "train"))
    assert 100 < len(trains) < 220
    scored = set(ids("strategyqa:searchain"))
    assert scored | trains == {f"s{n}" for n in range(900)}
    assert not scored & trains


def test_the_papers_figures_stand_beside_their_samples() -> None:
    direct = [figure.percent for figure in figures("hotpotqa", {"direct"})]
    assert len(direct) == 3
    for name in ("hotpotqa:searchain", "hotpotqa-fullwiki", "recorded:hotpotqa"):
        assert [figure.percent for figure in figures(name, {"direct"})] == direct


def test_a_file_that_was_not_fetched_has_no_sample(data: Path) -> None:
    line = {"id": "1", "question": "Why?", "answers": ["x"], "split": "dev"}
    (data / "hotpotqa.jsonl").write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(
        QuestreeError, match=r"hotpotqa:searchain is a sample of the published dev .*questree fetch hotpotqa"
    ):
        load_task("hotpotqa:searchain")


def test_a_part_of_the_task_is_not_passed_off_as_a_sample(data: Path, published: Callable[..., Path]) -> None:
    fetch_task("hotpotqa", files=[published("dev.json", [rows.HOTPOT])])
    with pytest.raises(QuestreeError, match=r"hotpotqa:blendfilter needs 500 questions; .* has 1\."):
        load_task("hotpotqa:blendfilter")
    with pytest.raises(QuestreeError, match=r"no questions of 'blend'.* samples are: searchain, tree-of-reviews"):
        load_task("hotpotqa:blend")
