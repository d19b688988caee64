"""What `--help` shows: the commands in groups, and every word of every option on 80 columns."""

import re

import pytest
import typer

from questree.cli import COMMANDS, app

ROOT = typer.main.get_command(app)
FIRST = ["index", "ask", "compile", "compare", "show", "serve"]


def test_commands_stand_in_groups_and_those_that_everybody_uses_come_first(questree):
    panels = re.findall(r"─ ([\w ]+) ─+[╮\n]((?:.(?!╰))*)", questree("--help").done().out, re.DOTALL)
    named = {panel: re.findall(r"(?m)^│ ([a-z][\w-]+)", listed) for panel, listed in panels if panel != "Options"}
    first, *others = named
    assert (named[first], others) == (FIRST, ["Ask", "Build", "Measure", "Share", "Tools"])
    assert sorted(name for names in named.values() for name in names) == sorted(COMMANDS)
    assert len(COMMANDS) == 27


@pytest.mark.parametrize(("typed", "meant"), [("indx", "index"), ("serve-retreiver", "serve-retriever")])
def test_a_command_that_is_typed_wrongly_is_suggested(questree, typed, meant):
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in questree(typed).refused()


@pytest.mark.parametrize(
    ("command", "switch", "name", "value"),
    [("serve", "--no-follow-ups", "follow_ups", False), ("evaluate", "--event-loop", "event_loop", True)],
)
def test_a_switch_has_the_name_that_changes_its_default(command, switch, name, value):
    made = ROOT.get_command(None, command).make_context(command, ["direct", switch])
    assert made.params[name] is value


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_of_the_help_is_cut_where_the_screen_is_narrow(questree, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    shown = questree(command, "--help").done().out.replace("│", " ").split()
    for option in ROOT.get_command(None, command).params:
        assert [word for word in (option.help or "").split() if word not in shown] == []
        assert option.param_type_name == "argument" or {*option.opts, *option.secondary_opts} & {*shown}
