"""Replies that are kept: found again as they were, or not used at all."""

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from tiny_world import QUESTIONS

from questree.lm.kept_replies import use_lm_cache
from questree.programs import build
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running


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


def stores(folder):
    return sorted(folder.rglob("cache.db"))


def test_what_was_kept_is_found_by_the_next_process(kept):
    use_lm_cache()
    assert found(kept) == kept


def test_the_databases_are_not_opened_by_dspy_as_well(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    monkeypatch.setattr("diskcache.FanoutCache", lambda **_: pytest.fail("sixteen of them, for a tenth of a second"))
    use_lm_cache()
    assert dspy.cache.enable_disk_cache
    dspy.cache.disk_cache.set("key", {"text": "reply"})
    assert found(["key"]) == {"key": {"text": "reply"}}


@pytest.mark.parametrize("variable", [None, "OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_a_server_is_not_answered_for_by_another_with_the_same_model(kept, tmp_path, monkeypatch, variable):
    if variable is None:
        dspy.configure_cache(disk_cache_dir=str(tmp_path / "other"))  # DSPy's own, as it is from Python
    engine = SimulatedEngine(Mind(World(QUESTIONS), Traits()))
    cached = []
    with running(engine) as one, running(engine) as other:
        for address in (one, other, one):
            named = {"api_base": address} if variable is None else monkeypatch.setenv(variable, address) or {}
            with dspy.context(lm=dspy.LM("openai/simulated", api_key="x", **named)):
                cached.append(build("direct", {})(question=QUESTIONS[0].question).spent.cached)
    assert cached == [0, 0, 1]


def test_a_reply_that_was_changed_is_not_used(kept, tmp_path, caplog):
    draw, changed = random.Random(5), 0
    for store in stores(tmp_path):
        with sqlite3.connect(store) as rows:
            for row, value in rows.execute("SELECT rowid, value FROM Cache").fetchall():
                at = draw.randrange(len(value))
                other = value[:at] + bytes([value[at] ^ 1 << draw.randrange(8)]) + value[at + 1 :]
                changed += rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (other, row)).rowcount
    assert changed == len(kept)
    assert found(kept) == dict.fromkeys(kept)
    assert caplog.text.count("is not as it was kept") == 1


def test_a_reply_to_another_key_is_not_used(kept, tmp_path):
    for store in stores(tmp_path):
        with sqlite3.connect(store) as rows:
            replies = rows.execute("SELECT value FROM Cache").fetchall()
            others = [*replies[1:], *replies[:1]] if len(replies) > 1 else []
            for row, (other,) in enumerate(others, start=1):
                rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (other, row))
    now = found(kept)
    assert None in now.values()
    assert all(reply in (None, kept[key]) for key, reply in now.items())


def test_a_damaged_database_is_no_failed_call(kept, tmp_path, caplog):
    dspy.cache.disk_cache.close()  # all of it is in the databases now
    for store in stores(tmp_path):
        content = store.read_bytes()
        store.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))  # but for its first page
    assert found(kept) == dict.fromkeys(kept)
    assert "is asked for again" in caplog.text


def test_threads_share_the_connections_to_the_databases(kept, monkeypatch):
    opened: list[str] = []
    connect = sqlite3.connect

    def counted(path, *given, **how):
        opened.append(str(path))
        return connect(path, *given, **how)

    monkeypatch.setattr("diskcache.core.sqlite3.connect", counted)
    with ThreadPoolExecutor(40) as threads:
        barrier = threading.Barrier(40)
        replies = list(threads.map(lambda n: barrier.wait(20) is None or found(kept), range(40)))
    assert replies == [kept] * 40
    assert len(opened) <= 16


def test_a_reply_lies_in_the_database_whole(kept, tmp_path):
    assert set(tmp_path.rglob("*.val")) == set()


def test_only_what_was_sealed_is_taken_for_a_reply(kept, tmp_path, caplog):
    for store in stores(tmp_path):
        with sqlite3.connect(store) as rows:
            rows.execute("UPDATE Cache SET mode = 1, value = 'a text'")
    assert dspy.cache.disk_cache.get("key 1") is None
    assert "is not as it was kept" in caplog.text


def test_replies_that_come_while_python_ends_are_kept(kept, caplog):
    dspy.cache.disk_cache._worker.shutdown()  # Python does this before it waits for other threads
    dspy.cache.disk_cache.set("late", {"text": "reply"})
    use_lm_cache()
    assert found([*kept, "late"]) == kept | {"late": {"text": "reply"}}
    assert not caplog.text
