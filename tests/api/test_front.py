"""What `import questree` gives."""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest
from diskcache import FanoutCache

import questree
from questree.common.errors import QuestreeError
from questree.lm.kept_replies import use_lm_cache


def test_every_public_name_is_there():
    assert all(getattr(questree, name) is not None for name in dir(questree))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        questree.nothing  # noqa: B018


def test_a_program_by_name_takes_its_settings():
    assert questree.program("searchain", max_rounds=2).settings.max_rounds == 2


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [("searchian", {}, "Did you mean 'searchain'"), ("searchain", {"max_round": 2}, r"max_rounds \(5\)")],
)
def test_unknown_names_list_what_there_is(name, settings, said):
    with pytest.raises(QuestreeError, match=said):
        questree.program(name, **settings)


def test_each_server_has_a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    folders = set()
    for address in (None, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"):
        use_lm_cache(address)
        folders.add(dspy.cache.disk_cache_dir)
    assert len(folders) == 3


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_planted_in_the_cache_does_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    with FanoutCache(dspy.cache.disk_cache_dir, shards=16) as careless:
        careless["planted"] = Planted(tmp_path / "it ran")
    assert dspy.cache.disk_cache.get("planted") is None
    assert not (tmp_path / "it ran").exists()
