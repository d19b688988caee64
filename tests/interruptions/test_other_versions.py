"""What an older or a newer version wrote: refused by name, never mixed with what this one writes."""

import json

import dspy
import pytest

from questree.common.errors import QuestreeError
from questree.lm.kept_replies import use_lm_cache
from questree.retrieval import build_index, load_index


def test_an_index_of_another_version_is_refused(mini, tmp_path):
    index = build_index(mini.index.passages[:4], tmp_path / "index", kind="bm25")
    for format in (0, 99):
        manifest = index / "questree-index.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": format}))
        with pytest.raises(QuestreeError, match=f"its format is {format}"):
            load_index(index)


def test_a_cache_of_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    (store,) = tmp_path.rglob("replies.db")
    for left in store.parent.iterdir():
        left.unlink()
    store.write_bytes(b"not a database" * 100)
    with pytest.raises(QuestreeError, match="delete it if it is damaged"):
        use_lm_cache()


def test_replies_that_another_dspy_kept_are_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    dspy.cache.put({"asked": "it"}, {"text": "said"}, enable_memory_cache=False)
    assert dspy.cache.get({"asked": "it"}) == {"text": "said"}
    monkeypatch.setattr(dspy, "__version__", "3.9.0")
    use_lm_cache()
    assert dspy.cache.get({"asked": "it"}) is None
