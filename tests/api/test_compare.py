"""`questree compare`: programs and compiled ones side by side, stored, budgeted, and as files."""

import csv
import json
import re

import dspy
import pytest
from run_files import change, kept

from questree.cli.screen import print_figures
from questree.common.errors import QuestreeError
from questree.data import load_task
from questree.evaluation.leak import refuse_leak
from questree.evaluation.stored_runs import stored_runs
from questree.experiment import Experiment
from questree.optimize import save
from questree.programs import PROGRAMS
from questree.programs.baselines.memory import Direct


class Named:
    """Stands for a program, where only its name matters."""

    def __init__(self, name):
        self.name = name

    def predictors(self):
        return []


@pytest.fixture
def compare(questree, index):
    def run(*words):
        return questree("compare", *words, "--retriever", index, "--tracking-uri", "none")

    return run


def test_programs_are_compared_on_the_same_questions_and_stored(compare, workplace):
    ran = compare("searchain", "blendfilter", "--limit", "3", "--out", "c").done()
    assert "simulated" in ran.out
    assert "difference to searchain" in ran.out
    lines = list(csv.DictReader((workplace / "c" / "table.csv").open()))
    assert [line["program"] for line in lines] == ["searchain", "blendfilter"]
    there = kept(workplace / "c")
    asked = [sorted(record.id for record in run.records) for run in stored_runs([workplace / "c"])]
    assert asked[0] == asked[1]
    assert len(asked[0]) == 3
    compare("blendfilter", "searchain", "--limit", "3", "--out", "c").done()
    assert kept(workplace / "c")["questions"] == there["questions"]


def test_baselines_share_passages_and_turns_unless_one_is_told_otherwise(compare, workplace):
    compare("react", "oner", "toolformer:k=2", "searchain", "--limit", "1", "--out", "c").done()
    runs = {run.name: run.identity["settings"] for run in stored_runs([workplace / "c"])}
    shared = {
        name: (settings["k"], settings.get("max_turns")) for name, settings in runs.items()
    }  # a method has its own
    assert shared == {"react": (5, 8), "oner": (5, None), "toolformer:k=2": (2, None), "searchain": (3, None)}


def test_a_program_has_the_settings_behind_its_name(compare, workplace):
    named = "tree-of-reviews:preset=paper,widths=[1,1]"
    compare("tree-of-reviews", named, "--limit", "2", "--out", "c").done()
    runs = {run.name: run.identity["settings"] for run in stored_runs([workplace / "c"])}
    assert [runs[name]["expansion"] for name in ("tree-of-reviews", named)] == ["review", "mpc"]
    assert runs[named]["widths"] == [1, 1]


def test_a_comparison_as_json_has_the_scores_of_the_table_and_of_each_run(compare, workplace):
    table = compare("searchain", "direct", "--limit", "2", "--out", "c").out
    told = json.loads(compare("searchain", "direct", "--limit", "2", "--out", "c", "--json").out)
    assert [one["program"] for one in told["programs"]] == ["searchain", "direct"]
    for one in told["programs"]:
        assert f"{one['score']:.3f} [{one['score_low']:.3f}, {one['score_high']:.3f}]" in table
        [run] = stored_runs([workplace / "c" / one["program"]])
        assert (run.identity["program"], run.evaluation.score.mean) == (one["program"], one["score"])


def test_a_judge_that_judged_no_answer_agrees_with_nothing(compare):
    ran = compare("direct", "--limit", "2", "--window", "10", "--judge", "simulated", "--out", "c").done()
    assert "agrees with cover-EM" not in ran.out
    assert "agrees with cover-EM: " in compare("direct", "--limit", "2", "--judge", "simulated", "--out", "c").out


@pytest.fixture
def two_compiled(workplace):
    """The places of two compiled programs of one kind."""
    for place in ("A", "B"):
        program = Direct()
        program.predictors()[0].demos = [dspy.Example(question=f"Which letter is {place}?", answer=place)]
        save(program, workplace / place)
    return "A", "B"


def test_another_compiled_program_has_a_folder_of_its_own(compare, two_compiled, workplace):
    for place in (*two_compiled, "A"):
        compare(place, "--limit", "2", "--out", "c").done()
    first, second = sorted(run.name for run in stored_runs([workplace / "c"]))
    assert first == "direct-compiled"
    assert re.fullmatch(r"direct-compiled-[0-9a-f]{8}", second)
    told = json.loads(compare("B", "A", "--limit", "2", "--out", "c", "--json").out)
    assert [one["program"] for one in told["programs"]] == [second, first], "in whichever order they are named"


def test_the_run_of_a_compiled_program_is_found_under_an_older_name(compare, two_compiled, workplace):
    compare("A", "--limit", "2", "--out", "c")
    change(workplace / "c", "UPDATE run SET name = 'direct-compiled-2'")
    told = json.loads(compare("B", "A", "--limit", "2", "--out", "c", "--json").out)
    assert [one["program"] for one in told["programs"]] == ["direct-compiled", "direct-compiled-2"]


def test_a_program_is_not_scored_on_its_demonstrations(questree, index, workplace):
    program, [shown, *_] = Direct(), load_task("mini").split("train")
    program.predictors()[0].demos = [dspy.Example(question=shown.question, answer=shown.answers[0])]
    save(program, workplace / "program")
    words = ("program", "--lm", "simulated", "--retriever", index, "--split", "train", "--out", "scored")
    for command in ("evaluate", "compare", "attack"):
        ran = questree(command, *words)
        assert ran.code == 2
        assert "questions are for training and for scoring" in ran.err
        assert "choose different splits" in ran.err


def test_the_same_words_are_one_question_whatever_their_case_and_marks():
    with pytest.raises(QuestreeError, match="1 questions are for training and for scoring"):
        refuse_leak(["who wrote Emma?"], ["Who  wrote Emma ?", "Who wrote Persuasion?"])


def test_all_registered_programs_can_be_asked_for(compare, monkeypatch):
    asked, compared = [], []
    monkeypatch.setattr(Experiment, "program", lambda self, name, **shared: asked.append(name) or Named(name))
    monkeypatch.setattr("questree.evaluation.compare", lambda programs, *rest, **named: compared.extend(programs))
    compare("blendfilter", "--all")
    assert compared == asked
    assert asked[0] == "blendfilter", "the first named is the one that others are compared with"
    assert sorted(asked) == sorted(PROGRAMS)


def test_a_spent_budget_is_one_line_that_says_how_to_go_on(compare, workplace):
    words = ("direct", "searchain", "--limit", "2", "--out", "c")
    ran = compare(*words, "--max-calls", "2")
    assert ran.code == 2
    assert "max_calls=2" in ran.err
    assert (workplace / "c" / "page.html").exists()
    compare(*words, "--max-calls", "400").done()


def test_without_out_two_comparisons_share_what_was_asked(compare, workplace):
    for words in (("direct",), ("direct", "cot")):
        compare(*words, "--limit", "2").done()
    (folder,) = (workplace / "runs").iterdir()
    assert sorted(run.name for run in stored_runs([folder])) == ["cot", "direct"]


def test_without_out_another_defence_has_a_folder_of_its_own(compare, workplace):
    for words in ((), ("--defence", "agreement")):
        compare("oner", "--limit", "2", *words).done()
    assert len(list((workplace / "runs").iterdir())) == 2


@pytest.mark.parametrize("width", [50, 77, 110])
def test_a_narrow_screen_shows_every_figure_whole(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    score = "0.200 [0.040, 0.360]"
    line = {"program": "x" * 20, "cover-em": score, "difference to x": score, "words in": "12345", "rounds": "1.00"}
    print_figures([line, line], simulated=True)
    told = capsys.readouterr().out
    assert told.count(score) == 4
    assert "…" not in told
    assert all(word in told for heading in line for word in heading.split())
    assert max(map(len, told.splitlines())) <= width


def test_each_table_of_a_narrow_screen_tells_its_rows_apart(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    score = "0.200 [0.040, 0.360]"
    lines = [{"run": "searchain", "hops": hops, "steps": score, "score": score} for hops in ("two", "three")]
    print_figures(lines, simulated=False)
    told = capsys.readouterr().out
    assert [told.count(word) for word in ("two", "three", "hops", "steps", "score")] == [2, 2, 2, 1, 1]


def test_the_order_of_words_is_not_varied_over_bm25(questree, tmp_path):
    questree("index", "mini", "--kind", "bm25", "--out", str(tmp_path / "bm25")).done()
    asked = ("compare", "blendfilter", "--retriever", str(tmp_path / "bm25"), "--limit", "1", "--tracking-uri", "none")
    refused = questree(*asked, "--over", "question_first")
    assert (refused.code, "question_first has no effect with BM25" in refused.err) == (2, True)
    shown = questree(*asked, "--over", "preset", "--out", "c").out
    assert ("judgements=False" in shown, "question_first" in shown) == (True, False)
