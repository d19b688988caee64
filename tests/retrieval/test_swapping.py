"""Indexes that another process replaces, or adds to, at the worst moment."""

import os
import shutil

import filelock
import pytest

from questree.common.errors import CorpusError, IndexRefused, QuestreeError
from questree.common.files import read_unswapped
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
from questree.retrieval.indexes.contents import former_folder


def passages(name, count=3):
    return [Passage(id=f"{name}{number}", text=f"amber {name}") for number in range(count)]


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
    lock = filelock.FileLock(construction.lock_file(out), timeout=0)
    with lock, pytest.raises(QuestreeError, match="Another process is building"):
        add_to_index(passages("new"), out)
    add_to_index(passages("new"), out)
    assert [path.name for path in out.parent.iterdir()] == ["index"]


# A writer and a reader


def replace(out):
    build_index(passages("new", 2), out, kind="bm25", overwrite=True)


@pytest.mark.parametrize("moment", ["manifest_in", "PassageStore", "known_kind"])
def test_what_is_loaded_is_of_one_version(out, monkeypatch, moment):
    before_the_first_call(monkeypatch, index_folder, moment, lambda: replace(out))
    loaded = load_index(out)
    assert ids(loaded) == ["new0", "new1"]
    assert loaded.fingerprint == load_index(out).fingerprint
    assert loaded("amber new", k=2)[0].id == "new0"


def test_a_manifest_is_of_one_version(out, monkeypatch):
    before_the_first_call(monkeypatch, contents._KIND.__class__, "check_files", lambda: replace(out))
    assert read_manifest(out, full=True).corpus.passages == 2


def test_between_the_two_moves_the_former_index_is_loaded(out):
    os.replace(out, former_folder(out))
    assert ids(load_index(out)) == ["old0", "old1", "old2"]
    assert read_manifest(out).corpus.passages == 3


def test_an_index_that_is_replaced_all_the_time_is_not_mixed(tmp_path):
    (tmp_path / "a").mkdir()
    seen = []

    def read(place):
        seen.append(place)
        shutil.move(tmp_path / "a", tmp_path / f"{len(seen)}")
        (tmp_path / "a").mkdir()

    with pytest.raises(QuestreeError, match="replaced faster than it can be read"):
        read_unswapped(tmp_path / "a", lambda: None, read)
    assert 1 < len(seen) < 100


def test_what_cannot_be_read_is_said_at_once(tmp_path):
    with pytest.raises(IndexRefused, match="no index at"):
        load_index(tmp_path / "nowhere")
    with pytest.raises(IndexRefused, match="no index at"):
        add_to_index(passages("new"), tmp_path / "no" / "where")
    assert list(tmp_path.iterdir()) == []


# A writer that was killed


def killed_between_the_moves(out):
    os.replace(out, former_folder(out))


def test_a_former_index_is_put_back_before_it_is_added_to(out):
    killed_between_the_moves(out)
    add_to_index(passages("new"), out)
    assert len(load_index(out).passages) == 6
    assert [path.name for path in out.parent.iterdir()] == ["index"]


def test_a_former_index_is_put_back_rather_than_overwritten(out):
    killed_between_the_moves(out)
    with pytest.raises(QuestreeError, match="already holds an index"):
        build_index(passages("new"), out, kind="bm25")
    assert ids(load_index(out)) == ["old0", "old1", "old2"]


def test_a_deletion_that_was_killed_is_ended(out):
    former_folder(out).mkdir()
    (former_folder(out) / "a").touch()
    replace(out)
    assert [path.name for path in out.parent.iterdir()] == ["index"]
