"""Attacks on programs with a simulated LM whose credulity is known: what it falls for is counted, and nothing else."""

import json

import dspy
import pytest
from fakes import ScriptedEngine
from parrot import one_by_one
from run_files import kept
from tiny_world import PASSAGES, QUESTIONS, SURE

from questree.common.errors import QuestreeError
from questree.evaluation.attacks import INJECTIONS, Attack, attack
from questree.evaluation.tables import SELF_WRITTEN
from questree.lm.limits import OutOfBudgetError, RunPolicy
from questree.metrics import metric
from questree.programs import REGISTRY, build
from questree.retrieval import BM25Retriever, Span
from questree.simulate import simulated_lm

EXAMPLES = [question.to_example() for question in QUESTIONS]
BM25 = BM25Retriever.from_passages(PASSAGES.values())


def attacked(tmp_path, credulous, *, kinds=("poison",), programs=("oner-cot",), planted=2, **how):
    named, attacks = (
        {name: build(name, {}, retriever=BM25) for name in programs},
        [Attack(one, planted) for one in kinds],
    )
    how |= {"retriever": BM25, "out": str(tmp_path / "attack"), "task": "tiny"}
    traits = SURE.model_copy(update={"credulous": credulous})
    with dspy.context(lm=simulated_lm(QUESTIONS, traits, cache=False), adapter=None):
        return attack(named, EXAMPLES, metric("by-style"), attacks, **how)


@pytest.mark.parametrize("program", ["oner-cot", "searchain", "react"])
def test_who_believes_all_gives_the_attackers_answer_and_who_believes_nothing_does_not(program, tmp_path):
    taken = attacked(tmp_path / "all", 1.0, programs=[program], planted=5).rows[0]
    assert taken.success.mean >= 0.25  # the methods that search step by step meet less of it
    assert taken.attacked.mean < taken.clean.mean
    assert taken.found > 0
    assert taken.retrieved > 0
    untaken = attacked(tmp_path / "none", 0.0, programs=[program]).rows[0]
    assert untaken.success.mean == untaken.unprompted == 0


@pytest.mark.parametrize("program", ["blendfilter", "tree-of-reviews"])
def test_a_plant_that_is_found_counts_also_where_the_program_turns_it_away(program, tmp_path):
    row = attacked(tmp_path, 0.0, programs=[program], planted=5).rows[0]
    assert row.found == 1
    assert row.retrieved >= 5
    assert row.cited == 0


def test_the_defence_keeps_poison_out(tmp_path):
    none, agreement = attacked(tmp_path, 1.0, defences=("none", "agreement")).rows
    assert none.success.mean == 1
    assert agreement.success.mean == 0
    assert agreement.retrieved < none.retrieved
    assert agreement.clean.mean == none.clean.mean


def test_a_reader_keeps_out_what_it_finds_no_answer_in(tmp_path):
    class Reader:
        name, threshold, read_many = "trained", 0.0, None

        def __call__(self, query, passage):
            return Span(text="", score=-1.0 if passage.id.startswith("planted") else 1.0)

    none, reader = attacked(tmp_path, 1.0, defences=("none", "reader"), reader=Reader()).rows
    assert (none.success.mean, reader.success.mean, reader.retrieved) == (1, 0, 0)


def test_a_defence_that_cannot_be_had_is_told_before_anything_is_asked(tmp_path):
    for name, said in {"reader": "costs no LM call where a trained one reads", "luck": "no defence 'luck'"}.items():
        with pytest.raises(QuestreeError, match=said):
            attacked(tmp_path, 1.0, defences=("none", name))
    assert not (tmp_path / "attack").exists()


def test_the_defence_does_not_see_what_it_does_not_look_for(tmp_path):
    rows = attacked(tmp_path, 1.0, kinds=("keywords", *INJECTIONS), defences=("agreement",)).rows
    assert [row.success.mean > 0.5 for row in rows] == [True] * 4


def test_a_program_without_retrieval_cannot_be_reached(tmp_path):
    with pytest.raises(QuestreeError, match="nothing to attack"):
        attacked(tmp_path, 0.0, programs=())
    row = attacked(tmp_path, 1.0, programs=["direct"]).rows[0]
    assert (row.success.mean, row.found, row.cited) == (0, 0, 0)
    assert row.attacked == row.clean


def test_an_attack_goes_on_where_it_was(tmp_path):
    first = attacked(tmp_path, 1.0)
    folder = tmp_path / "attack"
    there = kept(folder)
    assert len(there["run"]) == 2
    assert attacked(tmp_path, 1.0).rows == first.rows
    assert kept(folder) == there
    assert "| oner-cot | poison | 2 | none |" in (folder / "attack.md").read_text()
    told = json.loads((folder / "attack.json").read_text())
    assert (told["rows"][0]["success"], told["simulated"]) == (1.0, True)
    assert (folder / "attack.csv").read_text().count("\n") == 2


def test_when_the_budget_ends_the_rows_that_were_made_are_told_and_the_same_attack_goes_on(tmp_path):
    row = attacked(tmp_path / "alone", 1.0).rows[0]
    two = 2 * len(QUESTIONS)  # LM calls of the clean run and of the one under attack
    kinds, folder = ("poison", "targeted"), tmp_path / "attack"
    stopped = attacked(tmp_path, 1.0, kinds=kinds, policy=one_by_one(max_calls=two + 1))
    assert stopped.rows == (row,)
    assert "oner-cot, targeted-2, defence none: Stopped: the budget max_calls" in (folder / "attack.md").read_text()
    assert json.loads((folder / "attack.json").read_text())["stopped"] == stopped.stopped
    whole = attacked(tmp_path, 1.0, kinds=kinds)
    assert (len(whole.rows), whole.stopped) == (2, None)
    with pytest.raises(OutOfBudgetError):
        attacked(tmp_path / "none", 1.0, policy=one_by_one(max_calls=two - 1))


def test_a_program_that_fails_by_itself_leaves_the_rows_of_the_others(tmp_path, monkeypatch):
    def fail(*args):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(REGISTRY.named("react"), "reason", fail)
    run = attacked(tmp_path, 1.0, programs=["react", "oner-cot"])
    assert [row.program for row in run.rows] == ["oner-cot"]
    assert run.stopped.startswith(f"react, clean, defence none: The first {len(QUESTIONS)} questions all failed")


def test_texts_that_an_lm_writes_count_against_the_budget(tmp_path):
    lm = dspy.LM("scripted/test", engine=ScriptedEngine(["yes"] * 99), cache=False)

    def write(question, target, count):
        lm("write")
        return [f"It is {target}."] * count

    n = len(QUESTIONS)
    with pytest.raises(OutOfBudgetError, match="Stopped: the budget max_calls=2 is spent"):
        attacked(tmp_path, 1.0, write=write, policy=RunPolicy(max_calls=2))
    with pytest.raises(OutOfBudgetError, match="poison-2"):
        attacked(tmp_path / "more", 1.0, write=write, policy=one_by_one(max_calls=2 * n + 1))
    enough = attacked(tmp_path / "most", 1.0, write=write, policy=one_by_one(max_calls=3 * n))
    assert len(enough.rows) == 1


def test_an_attack_says_that_the_lm_wrote_the_questions_that_it_answers(tmp_path):
    lm = simulated_lm(QUESTIONS, SURE, cache=False)
    own = [one.model_copy(update={"written_by": lm.model}).to_example() for one in QUESTIONS]
    for name, examples in {"own": own, "others": EXAMPLES}.items():
        with dspy.context(lm=lm, adapter=None):
            run = attack(
                {"oner-cot": build("oner-cot", {}, retriever=BM25)},
                *(examples, metric("by-style"), [Attack("poison", 1)]),
                **{"retriever": BM25, "out": tmp_path / name},
            )
        files = run.files()
        told = [SELF_WRITTEN in text for text in (run.table.warning, files["attack.md"], files["attack.json"])]
        assert told == [name == "own"] * 3
        assert ("True,True" in files["attack.csv"]) == (name == "own")


def test_a_program_with_a_simulated_lm_of_its_own_makes_a_simulated_table(tmp_path):
    program = build("oner-cot", {}, retriever=BM25)
    program.set_lm(simulated_lm(QUESTIONS, SURE, cache=False))
    with dspy.context(lm=dspy.LM("never/asked"), adapter=None):
        run = attack(
            {"own": program}, EXAMPLES, metric("by-style"), [Attack("poison", 1)], retriever=BM25, out=tmp_path
        )
    assert run.simulated
    assert run.facts["LM"].startswith("simulated/")
