"""Runs as pages look at them, from files and capsules."""

import json
import shutil

import pytest
from run_files import change, rows

from questree.common.errors import QuestreeError
from questree.pages.shown_runs import ShownRuns
from questree.pages.study import Study


@pytest.fixture(scope="module")
def study(made_by):
    """A folder of two runs, and a capsule of them."""
    words = "compare searchain direct --limit 3 --tracking-uri none --out runs"
    return made_by(words, "pack runs --out runs.capsule")


@pytest.fixture
def runs(study, workplace):
    """A copy of the folder."""
    shutil.copytree(study / "runs", workplace / "all runs")
    return workplace / "all runs"


def test_answers_that_a_killed_run_had_not_scored_are_shown_and_the_others_compared(runs, questree):
    [(number,)] = rows(runs, "SELECT number FROM run WHERE name = 'direct'")
    ids = rows(runs, f"SELECT id FROM questions WHERE run = {number}")
    change(runs, ("DELETE FROM scores WHERE run = ? AND id = ?", (number, *ids[-1])))
    shown = ShownRuns([runs])
    verdicts = {
        name: [row.verdict for row in run.rows.values()].count("not scored") for name, run in shown.runs.items()
    }
    assert verdicts == {"searchain": 0, "direct": 1}
    compared = {line["program"]: one["facts"] for one in shown.compared for line in one["lines"]}
    assert {name: "questions: 2" in facts for name, facts in compared.items()} == {"direct": True, "searchain": False}
    assert questree("export", str(runs), "--out", "site").code == 0
    said = questree("show", str(runs))
    assert said.code == 0
    assert f"questree show '{runs}/searchain'" in said.out


def test_runs_of_one_name_from_several_sources_are_all_shown(study, workplace):
    shutil.copy(study / "runs.capsule", workplace / "theirs.capsule")
    shown = ShownRuns([study / "runs.capsule", workplace / "theirs.capsule", study / "runs"])
    names = ["runs/searchain", "runs/direct", "theirs/searchain", "theirs/direct", "runs/searchain-2", "runs/direct-2"]
    assert list(shown.runs) == names
    assert Study(shown).title == "runs/searchain, runs/direct, theirs/searchain, theirs/direct and 2 more"
    assert [line["program"] for line in shown.compared[0]["lines"]] == names
    for run, id in ((run, id) for run, one in shown.runs.items() for id in one.rows):
        first = f"runs/{run.rpartition('/')[2].removesuffix('-2')}"
        assert shown.record(run, id) == shown.record(first, id)
        assert shown.asked(run, id) == shown.asked(first, id) != []


def test_a_capsule_has_the_figures_of_its_folder(runs, workplace, questree):
    change(
        runs,
        "INSERT INTO scores SELECT run, id, 'f1', score / 3 FROM scores",
        ("UPDATE run SET metrics = ?, seed = 7", ('["f1"]',)),
    )
    assert questree("pack", str(runs), "--out", "study.capsule").code == 0
    assert ShownRuns([workplace / "study.capsule"]).compared == ShownRuns([runs]).compared


@pytest.mark.parametrize("changed", [{"question": "Who else?"}, {"gold_answers": ["another"]}])
def test_a_question_that_was_changed_between_runs_is_not_paired(runs, changed):
    [(id, record)] = rows(
        runs, "SELECT id, record FROM questions JOIN run ON run = number WHERE name = 'direct' LIMIT 1"
    )
    change(
        runs,
        (
            "UPDATE questions SET record = ? WHERE id = ? AND run = (SELECT number FROM run WHERE name = 'direct')",
            (json.dumps({**json.loads(record), **changed}), id),
        ),
    )
    shown = ShownRuns([runs])
    assert [len(one["lines"]) for one in shown.compared] == [1, 1], "no difference is told"
    pages = Study(shown)
    assert [*map(len, pages.answers.values())].count(1) == 2, "each has a page of its own"
    assert {shown.record("direct", name).id for name in shown.runs["direct"].rows} == {*shown.runs["searchain"].rows}


@pytest.mark.parametrize("name", ["runs", "runs.capsule"])
def test_the_first_program_of_a_comparison_is_the_one_that_others_are_compared_with(study, name):
    [compared] = ShownRuns([study / name]).compared
    assert [line["program"] for line in compared["lines"]] == ["searchain", "direct"]
    assert "difference to searchain" in compared["lines"][0]


def test_a_run_that_cannot_be_read_is_left_out_and_said(runs):
    change(runs, "UPDATE run SET about = '{' WHERE name = 'direct'")
    shown = ShownRuns([runs])
    assert list(shown.runs) == ["searchain"]
    assert "is damaged" in shown.left_out[0]
    page = Study(shown).page("index.html") or ""
    assert [one in page for one in ("Left out: ", "<b>searchain</b>", "<b>direct</b>")] == [True, True, False]
    change(runs, "UPDATE run SET about = '{'")
    with pytest.raises(QuestreeError, match="is damaged"):
        ShownRuns([runs])
