"""`questree attack`: a table on the screen and in files, gone on with, refused in one line."""

import csv
import json

from run_files import rows

from questree.evaluation import read_records

FEW = "--limit 3 --planted 1 --out a"


def test_each_program_attack_and_defence_is_a_row(questree, workplace):
    named_twice = "--defence none --defence agreement --defence none --planted 1"
    words = f"attack oner-cot direct --kind poison --kind targeted --credulous 1 {FEW} {named_twice}"
    assert "simulated" in questree(words).done().out
    rows = list(csv.DictReader((workplace / "a" / "attack.csv").open()))
    assert len(rows) == 8
    assert [(row["program"], row["defence"], row["attack"]) for row in rows][:4] == [
        ("oner-cot", "none", "poison"),
        ("oner-cot", "none", "targeted"),
        ("oner-cot", "agreement", "poison"),
        ("oner-cot", "agreement", "targeted"),
    ]
    assert float(rows[0]["success"]) > float(rows[2]["success"]) == 0


def test_a_budget_that_ends_leaves_a_table_of_what_was_made(questree, workplace):
    ran = questree(f"attack oner-cot --kind poison --kind targeted --max-calls 7 --concurrency 1 {FEW}")
    assert "the budget max_calls=7 is spent" in ran.refused()
    assert "poison" in ran.out
    assert "targeted" not in ran.out
    assert "the budget max_calls=7 is spent" in (workplace / "a" / "attack.md").read_text()


def test_the_limits_hold_for_each_question_of_an_attack(questree, workplace):
    questree(f"attack oner-cot --deadline 0.000001 --timeout 7 {FEW}").done()
    policies = rows(workplace / "a", "SELECT policy FROM run WHERE name = 'none/poison-1/oner-cot'")
    assert [json.loads(policy)["timeout"] for (policy,) in policies] == [7]
    assert {record.failure.cause for record in read_records(workplace / "a/none/poison-1/oner-cot")} == {"deadline"}


def test_a_defence_is_a_setting_of_every_command(questree, workplace):
    questree("evaluate oner --limit 2 --defence agreement --out e").done()
    assert rows(workplace / "e", "SELECT retriever FROM run") == [("bm25 with agreement",)]
