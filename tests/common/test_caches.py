"""Where things are kept that are made once: in the folder that is named, or the platform's; without a home, nowhere."""

from pathlib import Path

import pytest

from questree.common.errors import QuestreeError
from questree.common.files import cache_folder


def test_without_a_home_a_folder_must_be_named(monkeypatch, tmp_path):
    for name in ("QUESTREE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(QuestreeError, match="name a folder for caches: QUESTREE_CACHE"):
        cache_folder()
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
