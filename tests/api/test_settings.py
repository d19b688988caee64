"""Settings from options, environment and file, in that order."""

from __future__ import annotations

import pytest

from questree.common.errors import QuestreeError
from questree.settings import run_settings


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_options_go_before_the_environment_and_that_before_the_file(tmp_path, monkeypatch):
    (tmp_path / "questree.toml").write_text('lm = "file"\nseed = 1\nlimit = 1\n')
    monkeypatch.setenv("QUESTREE_SEED", "2")
    monkeypatch.setenv("QUESTREE_LIMIT", "2")
    settings = run_settings(limit=3, lm=None)
    assert (settings.lm, settings.seed, settings.limit) == ("file", 2, 3)


def test_a_named_file_is_taken_instead_of_the_one_in_the_folder(tmp_path):
    (tmp_path / "questree.toml").write_text("seed = 1\n")
    (tmp_path / "other.toml").write_text("seed = 2\n")
    assert run_settings(tmp_path / "other.toml").seed == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [("lmm = 'x'\n", "unknown settings lmm"), ("lm =", "no TOML file"), ("limit = 0\n", "limit: Input should be")],
)
def test_a_faulty_file_is_named_with_what_is_wrong(tmp_path, content, said):
    (tmp_path / "questree.toml").write_text(content)
    with pytest.raises(QuestreeError, match=said):
        run_settings()


def test_workers_without_a_cluster_are_refused():
    assert run_settings(on="ray", workers=2).workers == 2
    with pytest.raises(QuestreeError, match=r"workers: .*name it with --on, or leave --workers out \(got 2\)"):
        run_settings(workers=2)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(QuestreeError, match="nowhere"):
        run_settings(tmp_path / "nowhere.toml")
