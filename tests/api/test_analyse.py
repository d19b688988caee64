"""`questree analyse`: each analysis over what `questree compare` stored, without an LM."""

import shutil

import dspy
import pytest
from run_files import change

from questree.evaluation import analyses


@pytest.fixture(scope="module")
def compared(made_by):
    words = "compare searchain searchain-without-retrieval --limit 4 --split dev,test --out c --tracking-uri none"
    return made_by(words) / "c"


@pytest.fixture
def runs(compared, workplace):
    """A copy of the runs of two programs, in the working folder."""
    return shutil.copytree(compared, workplace / "c")


ONE, OTHER = "c/searchain", "c/searchain-without-retrieval"


def test_every_analysis_reads_stored_runs_and_says_that_they_are_simulated(questree, runs, monkeypatch):
    monkeypatch.setattr(dspy, "configure", lambda **settings: pytest.fail("an analysis asks no LM"))
    for words, said in (
        (f"sources {ONE}", "corrected"),
        (f"steps {ONE}", "hops"),
        ("efficiency c", "searchain-without-retrieval"),
        (f"misled {ONE} {OTHER} --right 0", "misled"),
        (f"helped {ONE} {OTHER}", "with on helped"),
    ):
        told = questree(f"analyse {words}").done().out
        assert "simulated" in told
        assert said in told
    assert "two single runs" in questree(f"analyse helped c {OTHER}").err
    for analysis in ("helped", "misled"):
        turned = questree(f"analyse {analysis} {OTHER} {ONE}").refused()
        assert f"{ONE} searched (bm25): give the run with retrieval first" in turned


def test_a_run_in_which_there_is_nothing_to_find_is_named_and_hides_no_other(questree, runs, caplog):
    questree("compare blendfilter --limit 2 --out c").done()
    assert "corrected" in questree("analyse sources c").done().out
    assert "blendfilter: No node of this run has an answer of its own" in caplog.text
    assert "blendfilter: No node" in questree("analyse sources c/blendfilter").err


def test_each_line_of_json_says_of_its_own_run_whether_it_is_simulated(questree, runs):
    honest = "json_set(about, '$.lm.name', 'some/model', '$.lm.simulated', json('false'))"
    change(runs, f"UPDATE run SET about = {honest} WHERE name = 'searchain'")
    lines = questree("analyse efficiency c --json").json()
    assert [(line["run"], line["simulated"]) for line in lines] == [
        ("searchain", False),
        ("searchain-without-retrieval", True),
    ]
    [line] = questree(f"analyse misled {ONE} {OTHER} --right 0 --json").json()
    assert line["simulated"] is True
    assert "simulated" in questree("analyse efficiency c").out


def test_intervals_are_of_the_seed_of_the_run(questree, runs, monkeypatch):
    seeds, drawn = set(), analyses.mean_interval
    monkeypatch.setattr(analyses, "mean_interval", lambda *values, seed: seeds.add(seed) or drawn(*values, seed=seed))
    change(runs, "UPDATE run SET seed = 7 WHERE name = 'searchain'")
    for words in (f"steps {ONE}", f"helped {ONE} {OTHER}", f"misled {ONE} {OTHER} --right 0"):
        questree(f"analyse {words}").done()
    assert seeds == {7}
