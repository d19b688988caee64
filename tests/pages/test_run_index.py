"""The index of runs on disk: made once, made anew when a file of the runs changes, and never in the way."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from questree.common import manifests
from questree.pages import run_index
from questree.pages.run_index import index_of, open_index
from questree.pages.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder of two runs, and a capsule of them."""
    from questree.cli import app

    out = tmp_path_factory.mktemp("indexed")
    for command in (
        ["compare", "searchain", "direct", "--limit", "3", "--tracking-uri", "none", "--out", f"{out}/runs"],
        ["pack", f"{out}/runs", "--out", f"{out}/runs.capsule"],
    ):
        app(command, standalone_mode=False)
    return out


@pytest.fixture
def readings(monkeypatch):
    """What was read: a list of each time's sources."""
    read, read_sources = [], run_index.read_sources

    def counted(sources):
        read.append(sources)
        return read_sources(sources)

    monkeypatch.setattr(run_index, "read_sources", counted)
    return read


@pytest.mark.parametrize("name", ["runs", "runs.capsule"])
def test_runs_are_read_once_for_all_servers(study, workplace, readings, name):
    first, again = open_index(study / name), open_index(study / name)
    assert len(readings) == 1
    assert (first.runs, first.compared) == (again.runs, again.compared)
    for run, id in ((run, id) for run, one in first.runs.items() for id in one.rows):
        assert again.record(run, id) == first.record(run, id)
        assert again.asked(run, id) == first.asked(run, id) != []


def test_answers_that_a_killed_run_had_not_scored_are_shown_and_the_others_compared(study, workplace, questree):
    runs = workplace / "all runs"
    shutil.copytree(study / "runs", runs)
    shutil.copytree(runs / "direct", runs / "unscored")
    (runs / "unscored" / "scores.jsonl").unlink()
    scores = runs / "direct" / "scores.jsonl"
    scores.write_text("".join(scores.read_text().splitlines(keepends=True)[:2]))
    index = open_index(runs)
    verdicts = {
        name: [row.verdict for row in run.rows.values()].count("not scored") for name, run in index.runs.items()
    }
    assert verdicts == {"direct": 1, "searchain": 0, "unscored": 3}
    compared = {line["program"]: one["facts"] for one in index.compared for line in one["lines"]}
    assert {name: "questions: 2" in facts for name, facts in compared.items()} == {"direct": True, "searchain": False}
    assert questree("export", str(runs), "--out", "site").code == 0
    shutil.rmtree(runs / "unscored")
    shown = questree("show", str(runs))
    assert shown.code == 0
    assert "questree show 'all runs/searchain'" in shown.out.replace(f"{workplace}/", "")


def test_runs_of_one_name_from_several_sources_are_all_shown(study, workplace):
    shutil.copy(study / "runs.capsule", workplace / "theirs.capsule")
    sources = [study / "runs.capsule", workplace / "theirs.capsule", study / "runs"]
    names = ["searchain", "direct", "theirs/searchain", "theirs/direct"]
    index = index_of(run_index.read_sources(sources))
    assert list(index.runs) == [*names, f"{study}/runs/searchain", f"{study}/runs/direct"]
    assert [line["program"] for line in index.compared[0]["lines"]] == list(index.runs)


def test_a_capsule_has_the_figures_of_its_folder(study, workplace, questree):
    runs = workplace / "runs"
    shutil.copytree(study / "runs", runs)
    for run in (runs / "searchain", runs / "direct"):
        lines = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
        for line, score in zip(lines, (0.1, 0.4, 0.9), strict=True):
            line["scores"] |= {"f1": score}
        (run / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        evaluated = json.loads((run / "evaluated.json").read_text()) | {"metrics": ["f1"], "seed": 7}
        (run / "evaluated.json").write_text(json.dumps(evaluated))
    assert questree("pack", str(runs), "--out", "study.capsule").code == 0
    assert open_index(workplace / "study.capsule").compared == open_index(runs).compared


@pytest.mark.parametrize("changed", [{"question": "Who else?"}, {"answers": ["another"]}])
def test_a_question_that_was_changed_between_runs_is_not_paired(study, workplace, changed):
    runs = workplace / "runs"
    shutil.copytree(study / "runs", runs)
    first, *others = (runs / "direct" / "records.jsonl").read_text().splitlines()
    scored = {line["id"]: line for line in map(json.loads, (runs / "direct" / "scores.jsonl").read_text().splitlines())}
    record = json.dumps({**json.loads(first), **changed, "scores": scored[json.loads(first)["id"]]["scores"]})
    (runs / "direct" / "records.jsonl").write_text("".join(f"{line}\n" for line in (record, *others)))
    index = open_index(runs)
    assert [len(one["lines"]) for one in index.compared] == [1, 1], "no difference is told"
    pages = Study("runs", index)
    assert [len(pages.answers(number)) for number in pages.numbers].count(1) == 2, "each has a page of its own"
    assert {index.record("direct", name).id for name in index.runs["direct"].rows} == {*index.runs["searchain"].rows}


@pytest.mark.parametrize("name", ["runs", "runs.capsule"])
def test_the_first_program_of_a_comparison_is_the_one_that_others_are_compared_with(study, workplace, name):
    [compared] = open_index(study / name).compared
    assert [line["program"] for line in compared["lines"]] == ["searchain", "direct"]
    assert "difference to searchain" in compared["lines"][0]


@pytest.mark.parametrize(("first", "second"), [("before", "after"), ("repeat-2", "repeat-10"), ("z", "a")])
def test_other_runs_of_a_folder_stand_as_they_began_and_before_stands_ahead_of_after(study, workplace, first, second):
    for number, (run, name) in enumerate((("searchain", first), ("direct", second))):
        shutil.copytree(study / "runs" / run, workplace / "c" / name)
        os.utime(workplace / "c" / name / "run.json", ns=(0, 5 - number if first == "before" else number))
    assert list(open_index(workplace / "c").runs) == [first, second]
    shutil.copytree(workplace / "c" / first, workplace / "c" / "damaged")
    (workplace / "c" / "damaged" / "run.json").write_text("{")
    assert list(open_index(workplace / "c").runs) == [first, second], "also where another run cannot be read"


def test_an_index_of_other_files_is_made_anew(study, workplace, readings):
    runs = workplace / "runs"
    shutil.copytree(study / "runs", runs)
    assert len(open_index(runs).runs["direct"].rows) == 3
    lines = (runs / "direct" / "records.jsonl").read_text().splitlines(keepends=True)
    (runs / "direct" / "records.jsonl").write_text("".join(lines[:2]))
    assert len(open_index(runs).runs["direct"].rows) == 2
    assert len(readings) == 2


def test_an_index_of_another_version_is_made_anew(study, workplace, readings, monkeypatch):
    open_index(study / "runs")
    monkeypatch.setattr(manifests, "_version", lambda package: f"1.2.3 of {package}")
    assert len(open_index(study / "runs").runs["direct"].rows) == 3
    assert len(readings) == 2


def test_only_the_indexes_that_were_opened_last_are_kept(study, workplace, readings, monkeypatch):
    monkeypatch.setattr(run_index, "MOST", 2)
    indexes = workplace / "cache" / "run-pages"

    def opened(name):
        for file in indexes.glob("*.sqlite"):
            os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))  # as if it were a second ago
        return open_index(workplace / name)

    for name in "abc":
        shutil.copytree(study / "runs" / "direct", workplace / name)
    for name in "abac":
        last = opened(name)
    assert len(list(indexes.glob("*.sqlite"))) == 2
    assert len(readings) == 3
    opened("a")
    assert len(readings) == 3
    opened("b")
    assert len(readings) == 4
    [(name, run)] = last.runs.items()  # of c: its file is gone by now, and it is read all the same
    assert [last.record(name, id).id for id in run.rows] == list(run.rows)


@pytest.mark.parametrize("damage", [b"", b"no database" * 500, None])
def test_a_damaged_index_is_made_anew(study, workplace, readings, damage):
    open_index(study / "runs")
    [file] = (workplace / "cache" / "run-pages").glob("*.sqlite")
    file.write_bytes(file.read_bytes()[:5000] if damage is None else damage)
    assert len(open_index(study / "runs").runs["searchain"].rows) == 3
    assert len(readings) == 2


def test_where_nothing_can_be_written_the_index_is_in_memory(study, workplace, monkeypatch, caplog):
    (workplace / "file").write_text("")
    monkeypatch.setenv("QUESTREE_CACHE", str(workplace / "file"))
    assert len(open_index(study / "runs").runs["searchain"].rows) == 3
    assert "are kept in memory" in caplog.text
