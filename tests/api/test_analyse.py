"""`questree analyse`: each analysis over what `questree compare` stored, without an LM."""

import json
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


def test_every_analysis_reads_stored_runs_and_says_that_they_are_simulated(questree, runs, monkeypatch):
    monkeypatch.setattr(dspy, "configure", lambda **settings: pytest.fail("an analysis asks no LM"))
    one, other = runs / "searchain", runs / "searchain-without-retrieval"
    for words, said in (
        (("sources", one), "corrected"),
        (("steps", one), "hops"),
        (("efficiency", runs), "searchain-without-retrieval"),
        (("misled", one, other, "--right", "0"), "misled"),
        (("helped", one, other), "with on helped"),
    ):
        ran = questree("analyse", *words).done()
        assert "simulated" in ran.out
        assert said in ran.out
    assert "rouge-l" in questree("analyse", "alpha", one).err
    assert "two single runs" in questree("analyse", "helped", runs, other).err
    for analysis in ("helped", "misled"):
        turned = questree("analyse", analysis, other, one)
        assert turned.code == 2
        assert f"{one} searched (bm25): give the run with retrieval first" in " ".join(turned.err.split())


def test_a_run_in_which_there_is_nothing_to_find_is_named_and_hides_no_other(questree, index, runs, caplog):
    ran = questree(
        "compare", "blendfilter", "--limit", "2", "--out", "c", "--retriever", index, "--tracking-uri", "none"
    ).done()
    ran = questree("analyse", "sources", runs).done()
    assert "blendfilter: No node of this run has an answer of its own" in caplog.text
    assert "corrected" in ran.out
    assert "blendfilter: No node" in questree("analyse", "sources", runs / "blendfilter").err


def test_each_line_of_json_says_of_its_own_run_whether_it_is_simulated(questree, runs):
    one, other = runs / "searchain", runs / "searchain-without-retrieval"
    honest = "json_set(about, '$.lm.name', 'some/model', '$.lm.simulated', json('false'))"
    change(runs, f"UPDATE run SET about = {honest} WHERE name = '{one.name}'")
    lines = json.loads(questree("analyse", "efficiency", runs, "--json").out)
    assert {line["run"]: line["simulated"] for line in lines} == {one.name: False, other.name: True}
    (line,) = json.loads(questree("analyse", "misled", one, other, "--right", "0", "--json").out)
    assert line["simulated"] is True
    assert "simulated" in questree("analyse", "efficiency", runs).out


def test_intervals_are_of_the_seed_of_the_run(questree, runs, monkeypatch):
    seeds, drawn = set(), analyses.mean_interval
    monkeypatch.setattr(analyses, "mean_interval", lambda *values, seed: seeds.add(seed) or drawn(*values, seed=seed))
    one, other = runs / "searchain", runs / "searchain-without-retrieval"
    change(runs, f"UPDATE run SET seed = 7 WHERE name = '{one.name}'")
    for words in (("steps", one), ("helped", one, other), ("misled", one, other, "--right", "0")):
        questree("analyse", *words).done()
    assert seeds == {7}


def test_theta_is_swept_for_the_reader_that_is_named(questree, workplace):
    lines = [
        {
            "id": f"q{n}",
            "question": f"Which metal is number {n}?",
            "answers": [f"Metal{n}"],
            "split": "dev",
            "steps": [{"question": f"Which metal is number {n}?", "answer": f"Metal{n}", "support_title": f"T{n}"}],
            "paragraphs": [{"title": f"T{n}", "text": f"Number {n} is Metal{n}.", "is_supporting": True}],
        }
        for n in range(6)
    ]
    (workplace / "own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    asked = ("calibrate-reader", "lm", "--task", "own.jsonl", "--split", "dev", "--test-split", "none", "--limit", "5")
    said = json.loads(questree(*asked, "--out", "one", "--json").out)
    assert (said["reader"], said["readings"], said["simulated"]) == ("lm", 10, True)
    assert [point["which"] for point in said["points"] if point["which"]] == ["own", "best"]
    assert {"theta", "precision", "recall", "f1"} <= said["points"][0].keys()
    assert "supporting passage" in questree("calibrate-reader", "lm", "--task", "mini").err
