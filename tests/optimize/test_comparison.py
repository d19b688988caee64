"""Programs over the same questions: one parent run, paired differences, and a run that is gone on with."""

from __future__ import annotations

import pytest

from questree.optimize import Tracking, compare
from questree.programs import SearChain, SearChainSettings
from questree.retrieval.errors import QuestreeError


def test_programs_are_compared_with_the_first_question_by_question(mini, tmp_path):
    programs = {"five": mini.program(), "one": SearChain(mini.index, settings=SearChainSettings(max_rounds=1))}
    compared = compare(programs, mini.dev[:8], [mini.metric], task="mini", out=tmp_path)
    assert compared.simulated
    scores = [[r.scores[mini.metric.name] for r in one.records] for one in compared.evaluations.values()]
    by_hand = sum(b - a for a, b in zip(*scores, strict=True)) / 8
    assert compared.difference("one").mean == pytest.approx(by_hand)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["five", "one"]


def test_nothing_to_compare_is_refused(mini):
    with pytest.raises(QuestreeError, match="nothing to compare"):
        compare({}, mini.dev, [mini.metric])


def test_runs_have_one_parent(mini, tmp_path):
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    programs = {name: mini.program() for name in ("a", "b")}
    compare(programs, mini.dev[:2], [mini.metric], tracking=Tracking(uri=uri), title="both")
    runs = mlflow.MlflowClient(uri).search_runs(["1"])
    parent = next(run for run in runs if run.info.run_name == "both")
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert sorted(run.info.run_name for run in children) == ["a", "b"]
    assert all("score" in run.data.metrics for run in children)
