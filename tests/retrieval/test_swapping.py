"""Indexes that another process replaces, or adds to, at the worst moment."""

import json
import shutil

import filelock
import pytest
from manifests import rewrite_manifest

from questree.common.errors import CorpusError, IndexRefused, QuestreeError
from questree.retrieval import (
    Passage,
    add_to_index,
    build_index,
    index_builder,
    index_folder,
    load_index,
    read_manifest,
)
from questree.retrieval.indexes import construction, contents


def passages(name, count=3):
    return [Passage(id=f"{name}{number}", title=str(number), text=f"amber {name}") for number in range(count)]


def ids(index):
    return [passage.id for passage in index.passages]


@pytest.fixture
def out(tmp_path):
    """An index, alone in its folder."""
    return build_index(passages("old"), tmp_path / "index", kind="bm25")


def before_the_first_call(monkeypatch, owner, name, act):
    """Do something when a function is called for the first time, before it is."""
    called = getattr(owner, name)

    def late(*given, **named):
        monkeypatch.setattr(owner, name, called)
        act()
        return called(*given, **named)

    monkeypatch.setattr(owner, name, late)


# Two writers


def test_an_addition_keeps_what_another_added_before_its_turn(out, monkeypatch):
    before_the_first_call(monkeypatch, index_builder, "building", lambda: add_to_index(passages("first"), out))
    add_to_index(passages("second"), out)
    assert ids(load_index(out)) == [p.id for name in ("old", "first", "second") for p in passages(name)]


def test_an_addition_refuses_an_id_that_another_added_before_its_turn(out, monkeypatch):
    before_the_first_call(monkeypatch, index_builder, "building", lambda: add_to_index(passages("first"), out))
    with pytest.raises(CorpusError, match="'first0'"):
        add_to_index(passages("first"), out)


def test_an_index_that_was_built_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    out = tmp_path / "index"
    first = lambda: build_index(passages("first"), out, kind="bm25")  # noqa: E731
    before_the_first_call(monkeypatch, filelock.FileLock, "acquire", first)
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(passages("second"), out, kind="bm25")
    assert ids(load_index(out)) == ["first0", "first1", "first2"]


def test_the_lock_is_one_process_s_and_does_not_stay(out):
    lock = filelock.FileLock(out / construction.LOCK, timeout=0)
    with lock, pytest.raises(QuestreeError, match="Another process is writing an index"):
        add_to_index(passages("new"), out)
    add_to_index(passages("new"), out)
    assert [path.name for path in out.parent.iterdir()] == ["index"]


# A writer and a reader


def replace(out):
    build_index(passages("new", 2), out, kind="bm25", overwrite=True)


@pytest.mark.parametrize(
    ("owner", "moment"),
    [(contents._KIND.__class__, "check_files"), (index_folder, "PassageStore"), (index_folder, "known_kind")],
)
def test_what_is_loaded_is_of_one_version(out, monkeypatch, owner, moment):
    before_the_first_call(monkeypatch, owner, moment, lambda: replace(out))
    loaded = load_index(out)
    assert ids(loaded) in (["new0", "new1"], ["old0", "old1", "old2"])
    assert len(loaded("amber new old", k=9)) == len(loaded.passages)


def test_a_manifest_is_of_one_version(out, monkeypatch):
    before_the_first_call(monkeypatch, contents._KIND.__class__, "check_files", lambda: replace(out))
    assert read_manifest(out).corpus.passages == 2


def test_what_cannot_be_read_is_said_at_once(tmp_path):
    with pytest.raises(IndexRefused, match="no index at"):
        load_index(tmp_path / "nowhere")
    with pytest.raises(IndexRefused, match="no index at"):
        add_to_index(passages("new"), tmp_path / "no" / "where")
    assert list(tmp_path.iterdir()) == []


# A writer that was killed


def killed_when_it_was_finished(out):
    (out / "version-1" / construction.MARK).touch()


def killed_while_it_removed_the_former(out):
    shutil.copytree(out / "version-1", out / "version-2")
    rewrite_manifest(out, lambda manifest: manifest.update(json.loads(json.dumps(manifest).replace("n-1", "n-2"))))
    (out / "version-1" / "passages.jsonl").unlink()


@pytest.mark.parametrize("kill", [killed_when_it_was_finished, killed_while_it_removed_the_former])
def test_what_a_killed_writer_finished_is_added_to(out, kill):
    kill(out)
    assert len(load_index(out).passages) == 3
    add_to_index(passages("new"), out)
    assert len(load_index(out).passages) == 6
    assert len(list(out.iterdir())) == 2  # its manifest, and one version


def test_what_a_writer_left_that_was_killed_as_it_wrote_the_manifest_is_built_again(tmp_path):
    (left := tmp_path / "index" / "version-1").mkdir(parents=True)
    (left.parent / "version-2").mkdir()  # it was killed before, too
    for file in (left / construction.MARK, left.parent / f".{contents.NAME}.unfinished", left.parent / "lock"):
        file.touch()
    assert ids(load_index(build_index(passages("new"), left.parent, kind="bm25"))) == ["new0", "new1", "new2"]
    assert sorted(path.name for path in left.parent.iterdir()) == ["questree-index.json", "version-1"]
