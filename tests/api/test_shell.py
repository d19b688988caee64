"""What a shell and the programs behind a pipe get: JSON on stdout, completion, tables that fit, names in TOML."""

import os
import subprocess
import sys

import pytest
from run_files import rows

from questree.retrieval.retriever_names import DUPLICATES


@pytest.fixture(scope="module")
def folder(made_by):
    """A folder with a run, a comparison, a compiled program and a capsule."""
    return made_by(
        "compile oner --optimizer labeled-few-shot --train-limit 4 --limit 2 --tracking-uri none --out compiled",
        "compare searchain searchain-without-retrieval --limit 2 --tracking-uri none --out both",
        "pack both --out both.capsule",
    )


@pytest.fixture
def made(folder, workplace, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(("words", "names"), [
    ("show compiled", {"before", "after"}),
    ("show both/searchain", {"searchain"}),
    ("show compiled/program", {"program", "demonstrations"}),
    ("audit mini --limit 2", {"passages", "questions", "shares", "file"}),
    ("attack direct --limit 2", {"rows", "simulated"}),
    ("analyse sources both", {"run", "source", "share", "simulated"}),
    ("analyse helped both/searchain both/searchain-without-retrieval", {"simulated"}),
    ("analyse steps both", {"run", "simulated"}),
    ("analyse efficiency both", {"run", "seconds", "simulated"}),
    ("replay both.capsule", {"run", "questions", "same", "differing"}),
])  # fmt: skip
def test_a_result_as_json_is_all_that_is_printed(words, names, questree, made):
    told = questree(words, "--json").json()
    assert isinstance(told, list) == words.startswith(("analyse", "replay")), "several lines are a list"
    assert told
    assert all(names <= line.keys() for line in (told if isinstance(told, list) else [told]))


@pytest.mark.parametrize(("words", "said"), [
    ("show both/searchain q --why --json", "leave --format and --json out"),
    ("show both/searchain q --format mermaid --json", "--json is no tree"),
    ("show both/searchain --format html", "name the question"),
    ("show both q", "several runs (searchain, searchain-without-retrieval)"),
    ("show both --why", "holds several runs"),
    ("show compiled/program q", "is no evaluation"),
    ("prompts compiled/program --set k=2", "--set is for uncompiled programs"),
])  # fmt: skip
def test_an_option_that_would_mean_nothing_is_refused(words, said, questree, made):
    assert said in questree(words).refused()


def test_a_question_as_json_is_its_record(questree, made):
    [run] = questree("show both/searchain --json").json().values()
    row = run["table"][0]
    record = questree("show both/searchain --json", row["id"]).json()
    assert (record["question"], record["answer"]) == (row["question"], row["answer"])
    records = questree("show both --json", row["id"]).json()
    assert records["searchain"] == record
    assert records["searchain-without-retrieval"]["id"] == row["id"]


def test_a_shell_completes_commands_and_options():
    offered = {
        "questree comp": {"compare", "compile"},
        "questree analyse s": {"sources", "steps"},
        "questree evaluate --rer": {"--rerank"},
    }
    code = """
import os, sys
from contextlib import suppress
from questree.cli import main
for typed in sys.argv[1:]:
    os.environ |= {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    sys.argv = ["questree"]
    with suppress(SystemExit):
        main()
    print(end=";", flush=True)
"""
    asked = {**os.environ, "_QUESTREE_COMPLETE": "complete_bash"}
    ran = subprocess.run([sys.executable, "-c", code, *offered], env=asked, capture_output=True, text=True)
    assert [{*told.split()} for told in ran.stdout.split(";")[:-1]] == [*offered.values()], ran.stderr


@pytest.mark.parametrize("words", [
    "list tasks", "list programs", "list retrievers", "show both", "show both/searchain", "show compiled",
    "analyse efficiency both", "analyse sources both",
])  # fmt: skip
def test_a_table_fits_its_terminal_and_loses_no_letter(words, questree, made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    told = questree(words).out
    table = [line for line in told.splitlines() if line[:1] in " │┃┏┡├└┌"]
    assert [line for line in table if len(line.rstrip()) > 60] == []
    assert "…" not in told


def test_toml_and_a_variable_name_the_program(questree, workplace, monkeypatch):
    (workplace / "questree.toml").write_text('program = "oner"\nlimit = 1\n')
    assert questree("evaluate --json").json()["program"] == "oner"
    assert questree("evaluate cot --json").json()["program"] == "cot"
    assert questree("prompts").out == questree("prompts oner").out != questree("prompts direct").out
    questree("compare --over k --value 1 --value 2 --out varied").done()
    assert ("k=2",) in rows(workplace / "varied", "SELECT name FROM run")
    monkeypatch.setenv("QUESTREE_PROGRAM", "recite")
    assert questree("compare --json").json()["programs"][0]["program"] == "recite"
    assert "--program" not in questree("evaluate --help").out


_MINE = """
def first(query, seen):
    return 0 if seen else None

class Never:
    def __call__(self, query, seen):
        return None

number = 3
"""


def test_a_duplicate_check_of_one_s_own(questree, workplace, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(DUPLICATES, "_imported", {})
    (workplace / "mine.py").write_text(_MINE)
    words = "evaluate searchain --limit 2 --json --duplicates"
    assert questree(words, "mine:first", "--out", "a").json()["n"] == 2
    assert DUPLICATES.named("mine:Never")("a", ["a"]) is None
    assert "no duplicate check: give a function" in questree(words, "mine:number").refused()
