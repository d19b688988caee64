"""Whatever a command prints of a run is still on the screen, however hostile the texts, names and keys in it are."""

import ast
import json
from types import SimpleNamespace

import pytest
from house import ROOT
from reliability.fuzz import screen_is_still

from questree.cli.screen import Screen
from questree.metrics import REGISTRY
from questree.metrics.registry import METRICS

EVIL = "[/nope]\x1b[2J\x1b]0;owned\x07\u202e\x9b31m[bold]:smile:"


@pytest.fixture
def run(questree, workplace, monkeypatch):
    """A comparison in which every text, name and key is hostile; gives its folder."""
    monkeypatch.setattr("questree.evaluation.records.retrieval_scores", lambda *_: {EVIL: 0.5})
    node = SimpleNamespace(source=EVIL, blend=None)
    monkeypatch.setattr("questree.evaluation.records.without_repeats", lambda _: [node])
    REGISTRY.keep(EVIL, METRICS["em"].__class__(**{**vars(METRICS["em"]), "name": EVIL}))
    rows = [
        {"id": f"{EVIL}{n}", "question": f"Who? {EVIL}{n}", "answers": [EVIL], "split": "dev", "hops": 2}
        for n in range(2)
    ]
    (workplace / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    passages = [{"id": f"{EVIL}{n}", "title": EVIL, "text": f"who {EVIL}{n}"} for n in range(3)]
    (workplace / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in passages))
    assert questree("index", "corpus.jsonl", "--kind", "bm25", "--out", "index").code == 0
    settings = ("--task", "q.jsonl", "--retriever", "index", "--metric", EVIL, "--tracking-uri", "none")
    made = questree("compare", "searchain", "searchain-without-retrieval", *settings, "--out", EVIL)
    assert made.code == 0, made.err
    assert screen_is_still(made.out + made.err)
    return EVIL


COMMANDS = [
    "show RUN", "show RUN --json", "show RUN/searchain", "show RUN/searchain --json",
    *(f"show RUN/searchain ID0 {form}" for form in ("", "--why", "--json", "--format mermaid", "--format html")),
    "show RUN/searchain nothing",
    *(f"analyse {kind} RUN" for kind in ("sources", "steps", "efficiency", "alpha")),
    *(f"analyse {kind} RUN/searchain RUN/searchain-without-retrieval" for kind in ("helped", "misled")),
    "analyse sources RUN --json", "export RUN --out RUN-site",
    "pack RUN --out RUN.capsule", "replay RUN.capsule", "replay RUN.capsule --question ID0",
]  # fmt: skip


def test_every_command_that_prints_a_run_leaves_the_screen_as_it_is(run, questree):
    for command in COMMANDS:
        ran = questree(*(word.replace("RUN", run).replace("ID", EVIL) for word in command.split()))
        assert screen_is_still(ran.out + ran.err), command
        may_refuse = command.startswith("analyse") or "nothing" in command
        assert ran.code == 0 or (ran.code == 2 and may_refuse), (command, ran.err)


def test_markup_and_names_of_emoji_are_printed_as_they_stand(capsys):
    Screen().print("a [bold]b[/nope] :smile:", soft_wrap=True)
    assert capsys.readouterr().out == "a [bold]b[/nope] :smile:\n"


def test_commands_print_through_the_one_door():
    doors = {"typer.echo", "typer.secho", "print", "Console", "rich.print", "sys.stdout.write", "sys.stderr.write"}
    used = {
        f"{path.name}: {ast.unparse(node.func)}"
        for path in (ROOT / "api" / "cli").glob("*.py")
        if path.name != "screen.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in doors
    }
    assert used == set()
