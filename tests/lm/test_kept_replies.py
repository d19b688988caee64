"""Replies that are kept: found again as they were, or not used at all."""

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import dspy
import pytest
from tiny_world import QUESTIONS

from questree.lm.kept_replies import use_lm_cache
from questree.programs import build
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running_lm


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Twenty replies on disk, one of them long."""
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    use_lm_cache()
    replies = {f"key {n}": {"text": f"reply {n} " * (9_000 if n == 7 else 3)} for n in range(20)}
    for key, reply in replies.items():
        dspy.cache.disk_cache.set(key, reply)
    return replies


def found(keys):
    return {key: dspy.cache.disk_cache.get(key) for key in keys}


@contextmanager
def rows(folder):
    """The database that lies below a folder."""
    (store,) = folder.rglob("replies.db")
    with closing(sqlite3.connect(store)) as database, database:
        yield database


def test_what_was_kept_is_found_by_the_next_process(kept):
    use_lm_cache()
    assert found(kept) == kept


@pytest.mark.parametrize("variable", [None, "OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_a_server_is_not_answered_for_by_another_with_the_same_model(kept, tmp_path, monkeypatch, variable):
    if variable is None:
        dspy.configure_cache(disk_cache_dir=str(tmp_path / "other"))  # DSPy's own, as it is from Python
    engine = SimulatedEngine(Mind(World(QUESTIONS), Traits()))
    cached = []
    with running_lm(engine) as one, running_lm(engine) as other:
        for address in (one, other, one):
            named = {"api_base": address} if variable is None else monkeypatch.setenv(variable, address) or {}
            with dspy.context(lm=dspy.LM("openai/simulated", api_key="x", **named)):
                cached.append(build("direct", {})(question=QUESTIONS[0].question).spent.cached)
    assert cached == [0, 0, 1]


class OwnCache(dspy.clients.Cache):
    """A cache of the user's."""


def test_a_reply_of_a_cache_of_the_users_costs_nothing(tmp_path, monkeypatch):
    own = OwnCache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=str(tmp_path))
    monkeypatch.setattr(dspy, "cache", own)
    engine = SimulatedEngine(Mind(World(QUESTIONS), Traits()))
    with dspy.context(lm=dspy.LM("simulated/kept", engine=engine), adapter=None):
        spent = [build("direct", {})(question=QUESTIONS[0].question).spent for _ in range(2)]
    assert [one.cached for one in spent] == [0, 1]
    assert spent[0].tokens_in > 0 == spent[1].tokens_in
    assert isinstance(dspy.cache, OwnCache)


def test_a_reply_that_was_changed_is_not_used(kept, tmp_path, caplog):
    draw = random.Random(5)
    with rows(tmp_path) as database:
        for number, reply in database.execute("SELECT rowid, reply FROM replies").fetchall():
            at = draw.randrange(len(reply))
            other = reply[:at] + bytes([reply[at] ^ 1 << draw.randrange(8)]) + reply[at + 1 :]
            database.execute("UPDATE replies SET reply = ? WHERE rowid = ?", (other, number))
        assert database.total_changes == len(kept)
    assert found(kept) == dict.fromkeys(kept)
    assert caplog.text.count("is not as it was kept") == 1


@pytest.mark.parametrize("other", ["(SELECT reply FROM replies AS other WHERE other.rowid = 1)", "'a text'"])
def test_only_what_was_kept_for_this_key_is_taken_for_a_reply(other, kept, tmp_path, caplog):
    with rows(tmp_path) as database:
        database.execute(f"UPDATE replies SET reply = {other} WHERE rowid > 1")
    assert [key for key, reply in found(kept).items() if reply is not None] == ["key 0"]
    assert "is not as it was kept" in caplog.text


def test_a_damaged_database_is_no_failed_call(kept, tmp_path, caplog):
    dspy.cache.disk_cache.close()  # all of it is in the database now
    (store,) = tmp_path.rglob("replies.db")
    content = store.read_bytes()
    store.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))  # but for its first page
    use_lm_cache()
    assert found(kept) == dict.fromkeys(kept)
    assert "malformed" in caplog.text
    assert "is asked for again" in caplog.text


def test_threads_share_the_connection_to_the_database(kept, monkeypatch):
    monkeypatch.setattr("sqlite3.connect", lambda *_, **__: pytest.fail("a connection for each would be too many"))
    with ThreadPoolExecutor(40) as threads:
        barrier = threading.Barrier(40)
        replies = list(threads.map(lambda n: barrier.wait(20) is None or found(kept), range(40)))
    assert replies == [kept] * 40
