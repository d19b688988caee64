"""The command that counts what is tried, with few cases: it keeps what is done, and fails if anything went wrong."""

from __future__ import annotations

import logging
import sys

import pytest
from reliability import __main__ as command
from reliability import parts
from reliability.cached_replies import corrupt_replies


@pytest.fixture(autouse=True)
def _levels():
    """What is logged, as before: the command is a process of its own otherwise."""
    loggers = [logging.getLogger(name) for name in ("dspy", "questree")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["reliability", *map(str, words)])
    command.main()


def test_parts_are_counted_once_and_told_together(tmp_path, monkeypatch, capsys):
    words = ("--out", tmp_path, "--only", "fuzz", "--texts", 3)
    run(monkeypatch, *words)
    assert "| hostile texts, page | 3 | 0 | held 3 |" in capsys.readouterr().out
    monkeypatch.setattr(command, "PARTS", {"fuzz": None})  # nothing is done again
    run(monkeypatch, *words)
    assert "| hostile texts, page | 3 | 0 | held 3 |" in capsys.readouterr().out
    assert "hostile texts, page" in (tmp_path / "table.md").read_text()


def test_what_went_wrong_is_told_and_ends_it_with_an_error(tmp_path, monkeypatch):
    broken = {"fuzz": lambda given, folder: ([parts.Row("texts", 2, "held 1", ["<script>"])], "")}
    monkeypatch.setattr(command, "PARTS", broken)
    with pytest.raises(SystemExit, match="texts: <script>"):
        run(monkeypatch, "--out", tmp_path, "--only", "fuzz")


def test_a_changed_byte_of_the_cache_changes_no_answer(tmp_path):
    found = corrupt_replies(tmp_path, cases=6, seed=1)
    assert found.wrong == []
    assert found.tried == found.asked_again + found.refused + found.without_effect == 6
    assert found.asked_again + found.refused > 0


def test_attacks_are_told_by_kind_and_by_program(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PROGRAMS", {name: parts.PROGRAMS[name] for name in ("oner-cot", "direct")})
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    run(monkeypatch, "--out", tmp_path, "--only", "attacks", "--limit", 3, "--credulous", 1)
    told = (tmp_path / "table.md").read_text()
    assert "| attack, poison | 3 | 0 | won 3 (100%); 1 programs, defence none |" in told
    assert "| oner-cot | " in told
    assert "| direct | " in told
