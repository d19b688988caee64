"""`questree attack`: a table on the screen and in files, gone on with, refused in one line."""

import csv
import json

import pytest
from run_files import rows

from questree.evaluation import read_records


@pytest.fixture
def attack(questree, index):
    def run(*words):
        return questree("attack", *words, "--retriever", index, "--limit", "3", "--planted", "1", "--out", "a")

    return run


def test_each_program_attack_and_defence_is_a_row(attack, workplace):
    words = ("oner-cot", "direct", "--kind", "poison", "--kind", "targeted", "--defence", "none", "--credulous", "1")
    ran = attack(*words, "--defence", "agreement", "--defence", "none", "--planted", "1").done()  # named twice, one row
    assert "simulated" in ran.out
    rows = list(csv.DictReader((workplace / "a" / "attack.csv").open()))
    assert len(rows) == 8
    assert [(row["program"], row["defence"], row["attack"]) for row in rows][:4] == [
        ("oner-cot", "none", "poison"),
        ("oner-cot", "none", "targeted"),
        ("oner-cot", "agreement", "poison"),
        ("oner-cot", "agreement", "targeted"),
    ]
    assert float(rows[0]["success"]) > float(rows[2]["success"]) == 0


def test_a_budget_that_ends_leaves_a_table_of_what_was_made(attack, workplace):
    ran = attack("oner-cot", "--kind", "poison", "--kind", "targeted", "--max-calls", "7", "--concurrency", "1")
    assert ran.code == 2
    assert "oner-cot, poison" in ran.out.replace("\n", " ")
    assert "targeted" not in ran.out
    assert "the budget max_calls=7 is spent" in ran.err
    assert "the budget max_calls=7 is spent" in (workplace / "a" / "attack.md").read_text()


def test_the_limits_hold_for_each_question_of_an_attack(attack, workplace):
    attack("oner-cot", "--deadline", "0.000001", "--timeout", "7").done()
    policies = rows(workplace / "a", "SELECT policy FROM run WHERE name = 'none/poison-1/oner-cot'")
    assert [json.loads(policy)["timeout"] for (policy,) in policies] == [7]
    assert {record.failure.cause for record in read_records(workplace / "a/none/poison-1/oner-cot")} == {"deadline"}


def test_a_defence_is_a_setting_of_every_command(questree, index, workplace):
    ran = questree("evaluate", "oner", "--retriever", index, "--limit", "2", "--defence", "agreement", "--out", "e",
                   "--tracking-uri", "none")  # fmt: skip
    assert ran.code == 0, ran.err
    assert rows(workplace / "e", "SELECT retriever FROM run") == [("bm25 with agreement",)]
