"""What an older or a newer version wrote: refused by name, never mixed with what this one writes."""

from __future__ import annotations

import json
import shutil

import pytest

from questree.common.errors import QuestreeError
from questree.common.manifests import checksum_of
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.kept_replies import use_lm_cache
from questree.metrics import metric
from questree.optimize import compile as compile_program
from questree.optimize import load, optimizer
from questree.retrieval import build_index, load_index

right = metric("em")
OTHERS = [(0, "older"), (2, "newer")]


def rewrite(file, **changed):
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


@pytest.mark.parametrize(("format", "age"), OTHERS)
def test_a_run_of_another_version_is_refused(small, tmp_path, format, age):
    evaluate(small.program(), small.questions[:1], right, out=tmp_path)
    rewrite(tmp_path / "run.json", format=format)
    before = (tmp_path / "records.jsonl").read_bytes()
    with pytest.raises(QuestreeError, match=f"run.json was written by a.? {age} questree"):
        evaluate(small.program(), small.questions[:2], right, out=tmp_path)
    with pytest.raises(QuestreeError, match=age):
        stored_runs([tmp_path])
    assert (tmp_path / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", '{"program": "searchain"}', '{"format": "new"}', "\0\0", '{"form'])
def test_a_run_whose_manifest_is_none_is_refused(small, tmp_path, content):
    evaluate(small.program(), small.questions[:1], right, out=tmp_path)
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(QuestreeError, match=r"run\.json is damaged"):
        evaluate(small.program(), small.questions[:2], right, out=tmp_path)


def test_records_with_other_fields_are_read_or_named(small, tmp_path):
    evaluate(small.program(), small.questions[:2], right, out=tmp_path)
    file = tmp_path / "records.jsonl"
    first, second = map(json.loads, file.read_text().splitlines())
    del first["dropped"]
    file.write_text(f"{json.dumps(first | {'mood': 'good'})}\n{json.dumps(second)}\n")
    assert [record.id for record in read_records(tmp_path)] == [first["id"], second["id"]]
    file.write_text(f"{json.dumps(first | {'spent': 'much'})}\n{json.dumps(second)}\n")
    with pytest.raises(QuestreeError, match=r"line 1 is damaged.*ask its question again"):
        evaluate(small.program(), small.questions[:2], right, out=tmp_path)


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
        rewrite(copy / "compile.json", format=format)
        with pytest.raises(QuestreeError, match=f"compile.json was written by a.? {age} questree"):
            again()
        copy = shutil.copytree(compiled, tmp_path / f"program-{age}")
        manifest = json.loads((copy / "program" / "questree.json").read_text()) | {"format": format}
        (copy / "program" / "questree.json").write_text(json.dumps(manifest | {"checksum": checksum_of(manifest)}))
        with pytest.raises(QuestreeError, match=f"was written by a.? {age} questree"):
            again()
        with pytest.raises(QuestreeError, match=f"was written by a.? {age} questree"):
            load(copy / "program", retriever=small.index)
    for content in ("", "[]", '{"score": 1}', '{"score": 1, "questions": 4, "state": {}, "mood": "good"}'):
        copy = tmp_path / f"candidate-{len(content)}"
        shutil.copytree(compiled, copy)
        (copy / "candidates" / "000.json").write_text(content)
        with pytest.raises(QuestreeError, match=r"000\.json is damaged"):
            again()


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
