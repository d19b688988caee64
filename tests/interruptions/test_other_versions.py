"""What an older or a newer version wrote: refused by name, never mixed with what this one writes."""

from __future__ import annotations

import json
import shutil

import pytest
from run_files import change

from questree.common.errors import QuestreeError
from questree.common.manifests import checksum_of
from questree.lm.kept_replies import use_lm_cache
from questree.metrics import metric
from questree.optimize import compile as compile_program
from questree.optimize import load, optimizer
from questree.retrieval import build_index, load_index

right = metric("em")
OTHERS = [(0, "older"), (2, "newer")]


def rewrite(file, **changed):
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


@pytest.fixture
def compiled(small, tmp_path):
    compile_program(small.program(), small.examples(), right, optimizer=SEARCH, out=tmp_path / "compiled")
    return tmp_path / "compiled"


SEARCH = optimizer("bootstrap-random-search", candidates=1)


def test_a_compilation_of_another_version_is_refused_part_by_part(small, compiled, tmp_path):
    def again():
        return compile_program(small.program(), small.examples(), right, optimizer=SEARCH, out=copy)

    for format, age in OTHERS:
        copy = shutil.copytree(compiled, tmp_path / f"plan-{age}")
        change(copy, f"PRAGMA user_version = {format}")
        with pytest.raises(QuestreeError, match=f"runs.db was written by a.? {age} questree"):
            again()
        copy = shutil.copytree(compiled, tmp_path / f"program-{age}")
        manifest = json.loads((copy / "program" / "questree.json").read_text()) | {"format": format}
        (copy / "program" / "questree.json").write_text(json.dumps(manifest | {"checksum": checksum_of(manifest)}))
        with pytest.raises(QuestreeError, match=f"was written by a.? {age} questree"):
            again()
        with pytest.raises(QuestreeError, match=f"was written by a.? {age} questree"):
            load(copy / "program", retriever=small.index)


def test_an_index_of_another_version_is_refused(small, tmp_path):
    index = build_index(small.index.passages[:4], tmp_path / "index", kind="bm25")
    for format in (0, 99):
        rewrite(index / "questree-index.json", format=format)
        with pytest.raises(QuestreeError, match=f"its format is {format}"):
            load_index(index)


def test_a_cache_of_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    (store,) = tmp_path.rglob("003/cache.db")
    for left in store.parent.iterdir():
        left.unlink()
    store.write_bytes(b"not a database" * 100)
    with pytest.raises(QuestreeError, match="delete it if it is damaged"):
        use_lm_cache()


def test_replies_that_another_dspy_kept_are_not_taken(tmp_path, monkeypatch):
    import dspy

    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    dspy.cache.put({"asked": "it"}, {"text": "said"}, enable_memory_cache=False)
    assert dspy.cache.get({"asked": "it"}) == {"text": "said"}
    monkeypatch.setattr(dspy, "__version__", "3.9.0")
    use_lm_cache()
    assert dspy.cache.get({"asked": "it"}) is None
