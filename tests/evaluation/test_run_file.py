"""The file of runs: what is acknowledged outlives a kill, what a stranger made is read in bounds or refused by name."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from contextlib import closing

import pytest
from parrot import LOST, RIGHT, WRONG, Parrot, right
from run_files import change

from questree.common.errors import QuestreeError
from questree.evaluation.capsule import replay
from questree.evaluation.run import evaluate
from questree.evaluation.run_file import RunFileError, find, reading, writing
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.spent import Spent


@pytest.fixture
def run(tmp_path):
    """The folder of a run over three questions."""
    evaluate(Parrot(), [RIGHT, WRONG, LOST], right, task="t", out=tmp_path / "run")
    return tmp_path / "run"


KILLED = """
import sys
from pathlib import Path
from questree.evaluation.run_file import writing
from questree.lm.spent import Spent
with writing(Path(sys.argv[1]), "evaluation") as file:
    for number in range(1, 1001):
        file.pay(number, None, Spent(calls=1), ended=False)
        print(number, flush=True)
"""


def test_what_was_acknowledged_outlives_a_kill(tmp_path):
    """Once; `benchmarks.reliability` does it many times."""
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for _ in range(20):
        acknowledged = int(child.stdout.readline())
    child.kill()
    acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
    child.wait()
    with writing(tmp_path, "evaluation") as file:
        assert file.paid()[None].calls in (acknowledged, acknowledged + 1)


def test_what_many_threads_write_is_all_there(tmp_path):
    def pay(calls: range) -> None:
        for call in calls:
            file.pay(call, 1, Spent(calls=1, cost=0.1), ended=False)

    with writing(tmp_path, "evaluation") as file:
        threads = [threading.Thread(target=pay, args=[range(n, n + 20)]) for n in range(0, 160, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        file.pay(1, 1, Spent(calls=3), ended=True)
    with reading(tmp_path / "runs.db") as read:
        paid = read.paid()[1]
    assert (paid.calls, paid.cost) == (162, pytest.approx(15.9))


def hot(run, folder):
    """A copy of the run as a kill in the middle of a transaction leaves it: changed pages, and the old ones beside."""
    shutil.copytree(run, folder)
    code = (
        "import os, sqlite3, sys; file = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "words = ('PRAGMA cache_size = 1', 'BEGIN', 'DELETE FROM texts', 'DELETE FROM questions');"
        "[file.execute(one) for one in words];"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / "runs.db")], check=False)
    assert (folder / "runs.db-journal").stat().st_size
    return folder


def test_a_killed_run_is_read_as_it_was_and_put_right_by_its_owner(run, tmp_path):
    killed = hot(run, tmp_path / "killed")
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    assert sorted(record.id for record in read_records(killed)) == ["a", "b", "c"]
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == before
    program = Parrot()
    evaluate(program, [RIGHT, WRONG], right, task="t", out=killed)
    assert program.asked == []
    assert not (killed / "runs.db-journal").exists()


def test_a_journal_that_names_another_file_is_refused(run, tmp_path):
    killed = hot(run, tmp_path / "killed")
    with (killed / "runs.db-journal").open("ab") as journal:
        journal.write(b"/victim" + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(RunFileError, match="names another file"):
        read_records(killed)


def test_what_is_no_file_of_runs_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as store:
        store.execute("PRAGMA user_version = 1")  # as a kill leaves it: a file, and no table in it
    empty = (tmp_path / "x.db").read_bytes()
    contents = {b"": "is empty", empty: "is empty", b"no database": "is no file", empty[:16] + b"\0" * 4000: "cannot"}
    for content, told in contents.items():
        (tmp_path / "x.db").write_bytes(content)
        with pytest.raises(RunFileError, match=rf"x\.db {told}"):
            stored_runs([tmp_path / "x.db"])
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(RunFileError, match="holds no run"):
        stored_runs([tmp_path / "pipe.db"])


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("PRAGMA user_version = 99", "a newer questree"),
        ("PRAGMA user_version = 0", "an older questree"),
        ("PRAGMA application_id = 5", "another program's SQLite file"),
        ("CREATE VIEW more AS SELECT 1", "its tables are not"),
        ("DROP TABLE facts; CREATE VIEW facts AS SELECT 'kind' AS name, '1' AS value", "its tables are not"),
        ("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM questions; END", "its tables are not"),
        ("UPDATE run SET about = '{'", "is damaged"),
        ("UPDATE questions SET record = '{\"id\": \"a\"}' WHERE id = 'a'", "record of question 'a' is damaged"),
        ("UPDATE questions SET id = 'z' WHERE id = 'a'", "record of question 'z' is damaged"),
        ("UPDATE questions SET details = '[1]' WHERE id = 'b'", "record of question 'b' is damaged"),
        ("UPDATE questions SET record = replace(hex(zeroblob(9000)), '00', '[')", r"nested too deep|recursion"),
        ("UPDATE questions SET record = x'ff'", "is damaged"),
        ("DELETE FROM questions", "no finished question"),
    ],
)  # fmt: skip
def test_a_file_that_was_changed_is_refused(run, statement, told):
    change(run, statement)
    with pytest.raises(QuestreeError, match=told):
        stored_runs([run])


@pytest.mark.parametrize(
    ("calls", "cost", "told"), [("-5", "0", "a payment in it is negative"), ("1", "9e999", "or infinite")]
)
def test_payments_that_cannot_be_are_refused(run, calls, cost, told):
    change(run, f"INSERT INTO payments VALUES (1, 1, 1, {calls}, 0, 0, 0, 0, 0, 0, {cost}, 0)")
    for use in (lambda: stored_runs([run]), lambda: evaluate(Parrot(), [RIGHT], right, task="t", out=run)):
        with pytest.raises(QuestreeError, match=told):
            use()


BOMBS = {
    "one long text": ("UPDATE questions SET details = ?", (json.dumps({"extras": {"x": "x" * 40_000_000}}),)),
    "nested lists": ("UPDATE questions SET details = ?", (json.dumps({"extras": {"x": "[]," * 9_000_000}}),)),
    "one text again and again": (
        "UPDATE questions SET details = ?",
        (json.dumps({"extras": {"x": [{"text_digest": "0" * 32}] * 1000}}),),
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_does_not_take_much_memory(run, bomb):
    change(run, ("INSERT INTO texts VALUES (?, ?)", ("0" * 32, "x" * 2_000_000)), BOMBS[bomb])
    tracemalloc.start()
    with pytest.raises(RunFileError, match=r"too large|too many"):
        stored_runs([run])
    assert tracemalloc.get_traced_memory()[1] < 400_000_000
    tracemalloc.stop()


def test_a_flipped_byte_anywhere_is_noticed_or_harmless(run):
    file = run / "runs.db"
    content, shown = file.read_bytes(), [record.model_dump() for record in read_records(run)]
    for place in range(0, len(content), 997):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = [record.model_dump() for record in read_records(run)]
        except QuestreeError:
            continue
        assert len(found) <= len(shown)


def test_a_file_holds_one_kind_of_thing(run):
    change(run, """UPDATE facts SET value = '"compilation"' WHERE name = 'kind'""")
    with pytest.raises(QuestreeError, match="holds a run of compilation, and no run of evaluation can be added to it"):
        evaluate(Parrot(), [RIGHT], right, task="t", out=run)
    with pytest.raises(QuestreeError, match=r"runs\.db holds the run parrot: run what made it again"):
        evaluate(Parrot(), [RIGHT], right, task="t", out=run / "parrot")


def test_nothing_is_written_through_a_link(run, tmp_path):
    for name in ("runs.db", "runs.db-journal"):
        (tmp_path / name.replace(".", "-")).mkdir()
        (tmp_path / name.replace(".", "-") / name).symlink_to(run / "runs.db")
        with pytest.raises(QuestreeError, match="is a link"):
            evaluate(Parrot(), [RIGHT], right, out=tmp_path / name.replace(".", "-"))


def test_a_place_is_a_file_its_folder_or_a_run_in_it(run, tmp_path, monkeypatch):
    file = run / "runs.db"
    assert [find(place) for place in (run, file, tmp_path)] == [[(file, "")]] * 3
    assert [find(place) for place in (run / "parrot", file / "parrot")] == [[(file, "parrot")]] * 2
    assert stored_runs([run / "parrot"])[0].records == stored_runs([run])[0].records
    for place in (tmp_path / "none", run / "other"):
        with pytest.raises(RunFileError, match=r"holds no run|no finished question"):
            stored_runs([place])


def test_a_run_that_lacks_what_a_replay_needs_is_named(run):
    for value in ("NULL", "'{}'"):
        change(run, f"UPDATE run SET environment = {value}")
        with pytest.raises(RunFileError, match="cannot be replayed"):
            replay(run)


def test_lines_for_those_who_like_lines(run, questree):
    ran = questree("show", str(run), "--jsonl")
    lines = sorted(map(json.loads, ran.out.splitlines()), key=lambda line: line["id"])
    assert [(line["run"], line["id"], line["scores"], line["steps"]) for line in lines] == [
        ("run", "a", {"right": 1.0}, []), ("run", "b", {"right": 0.0}, []), ("run", "c", {"right": 0.0}, []),
    ]  # fmt: skip


def test_runs_of_former_forms_are_refused_with_the_version_that_reads_them(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").touch()
    (tmp_path / "s.capsule").write_bytes(b"PK\x03\x04")
    with pytest.raises(QuestreeError, match=r"another form.*18bee41"), writing(tmp_path / "run", "evaluation"):
        pass
    for place in (tmp_path / "run", tmp_path):
        with pytest.raises(QuestreeError, match=r"another form.*18bee41"):
            find(place)
    with pytest.raises(QuestreeError, match=r"another form.*18bee41"), reading(tmp_path / "s.capsule"):
        pass
