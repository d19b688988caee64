"""`questree compare`: programs and compiled ones side by side, stored, budgeted, and as files."""

import csv
import re

import dspy
import pytest
from run_files import change, kept

from questree.cli.screen import print_figures
from questree.data import load_task
from questree.evaluation.stored_runs import stored_runs
from questree.experiment import Experiment
from questree.optimize import save
from questree.programs import PROGRAMS
from questree.programs.baselines.memory import Direct


class Named:
    """Stands for a program, where only its name matters."""

    retriever = None

    def __init__(self, name):
        self.name = name

    def predictors(self):
        return []


def settings_of(folder):
    return {run.name: run.identity["settings"] for run in stored_runs([folder])}


def test_programs_are_compared_on_the_same_questions_and_stored(questree, workplace):
    told = questree("compare searchain blendfilter --limit 3 --out c").done().out
    assert "simulated" in told
    assert "difference to searchain" in told
    lines = list(csv.DictReader((workplace / "c" / "table.csv").open()))
    assert [line["program"] for line in lines] == ["searchain", "blendfilter"]
    there = kept(workplace / "c")
    asked = [sorted(record.id for record in run.records) for run in stored_runs([workplace / "c"])]
    assert asked[0] == asked[1]
    assert len(asked[0]) == 3
    questree("compare blendfilter searchain --limit 3 --out c").done()
    assert kept(workplace / "c")["questions"] == there["questions"]


def test_baselines_share_passages_and_turns_unless_one_is_told_otherwise(questree, workplace):
    questree("compare react oner toolformer:k=2 searchain --limit 1 --out c").done()
    shared = {name: (one["k"], one.get("max_turns")) for name, one in settings_of(workplace / "c").items()}
    assert shared == {"react": (5, 8), "oner": (5, None), "toolformer:k=2": (2, None), "searchain": (3, None)}


def test_a_program_has_the_settings_behind_its_name(questree, workplace):
    named = "tree-of-reviews:preset=paper,widths=[1,1]"
    questree("compare tree-of-reviews", named, "--limit", 2, "--out", "c").done()
    found = settings_of(workplace / "c")
    assert [found[name]["expansion"] for name in ("tree-of-reviews", named)] == ["review", "mpc"]
    assert found[named]["widths"] == [1, 1]


def test_a_comparison_as_json_has_the_scores_of_the_table_and_of_each_run(questree, workplace):
    words = "compare searchain direct --limit 2 --out c"
    table, told = questree(words).out, questree(words, "--json").json()
    assert [one["program"] for one in told["programs"]] == ["searchain", "direct"]
    for one in told["programs"]:
        assert f"{one['score']:.3f} [{one['score_low']:.3f}, {one['score_high']:.3f}]" in table
        [run] = stored_runs([workplace / "c" / one["program"]])
        assert (run.identity["program"], run.evaluation.score.mean) == (one["program"], one["score"])


def test_a_judge_that_judged_no_answer_agrees_with_nothing(questree):
    words = "compare direct --limit 2 --judge simulated --out c"
    assert "agrees with cover-EM" not in questree(f"{words} --window 10").done().out
    assert "agrees with cover-EM: " in questree(words).out


@pytest.fixture
def compiled(workplace, questree):
    """Compare two compiled programs of one kind, A and B, and give their names."""
    for place in ("A", "B"):
        program = Direct()
        program.predictors()[0].demos = [dspy.Example(question=f"Which letter is {place}?", answer=place)]
        save(program, workplace / place)

    def compared(places):
        told = questree(f"compare {places} --limit 2 --out c --json").json()
        return [one["program"] for one in told["programs"]]

    return compared


def test_another_compiled_program_has_a_folder_of_its_own(compiled, workplace):
    [[first], [second], _] = map(compiled, "ABA")
    assert first == "direct-compiled"
    assert re.fullmatch(r"direct-compiled-[0-9a-f]{8}", second)
    assert compiled("B A") == [second, first], "in whichever order they are named"
    assert len(stored_runs([workplace / "c"])) == 2


def test_the_run_of_a_compiled_program_is_found_under_an_older_name(compiled, workplace):
    compiled("A")
    change(workplace / "c", "UPDATE run SET name = 'direct-compiled-2'")
    assert compiled("B A") == ["direct-compiled", "direct-compiled-2"]


def test_a_program_is_not_scored_on_its_demonstrations(questree, workplace):
    program, [shown, *_] = Direct(), load_task("mini").split("train")
    program.predictors()[0].demos = [dspy.Example(question=shown.question, answer=shown.answers[0])]
    save(program, workplace / "program")
    for command in ("evaluate", "compare", "attack"):
        said = questree(f"{command} program --lm simulated --split train --out scored").refused()
        assert "questions are for training and for scoring" in said
        assert "choose different splits" in said


def test_all_registered_programs_can_be_asked_for(questree, monkeypatch):
    asked, compared = [], []
    monkeypatch.setattr(Experiment, "program", lambda self, name, **shared: asked.append(name) or Named(name))
    monkeypatch.setattr("questree.evaluation.compare", lambda programs, *rest, **named: compared.extend(programs))
    questree("compare blendfilter --all")
    assert compared == asked
    assert asked[0] == "blendfilter", "the first named is the one that others are compared with"
    assert sorted(asked) == sorted(PROGRAMS)


def test_a_spent_budget_is_one_line_that_says_how_to_go_on(questree, workplace):
    words = "compare direct searchain --limit 2 --out c --max-calls"
    assert "max_calls=2" in questree(words, 2).refused()
    assert (workplace / "c" / "page.html").exists()
    questree(words, 400).done()


def test_without_out_comparisons_share_what_was_asked_and_another_defence_has_a_folder_of_its_own(questree, workplace):
    for words in ("direct", "direct cot"):
        questree(f"compare {words} --limit 2").done()
    (folder,) = (workplace / "runs").iterdir()
    assert sorted(run.name for run in stored_runs([folder])) == ["cot", "direct"]
    questree("compare direct --limit 2 --defence agreement").done()
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


def test_the_order_of_words_is_not_varied_over_bm25(questree):
    asked = "compare blendfilter --limit 1 --over"
    assert "question_first has no effect with BM25" in questree(f"{asked} question_first").refused()
    shown = questree(f"{asked} preset --out c").out
    assert ("judgements=False" in shown, "question_first" in shown) == (True, False)
