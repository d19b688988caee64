"""The command that counts what is tried, with few cases: it keeps what is done, and fails if anything went wrong."""

import logging
import sys
from collections import Counter

import pytest
from reliability import __main__ as command
from reliability.corruption import corrupt_replies
from reliability.tally import Tally


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command with one part; what is logged is as before, since it is a process of its own otherwise."""
    loggers = [logging.getLogger(name) for name in ("dspy", "questree")]
    levels = [logger.level for logger in loggers]

    def run():
        monkeypatch.setattr(sys, "argv", ["reliability", "--out", str(tmp_path), "--only", "fuzz", "--texts", "3"])
        command.main()

    yield run
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def test_each_part_is_there():
    assert all(command.part(name) for name in command.PARTS)


def test_parts_are_counted_once_and_told_together(run, tmp_path, monkeypatch, capsys):
    for _ in range(2):
        run()
        assert "| hostile texts, page | 3 | 0 |  |" in capsys.readouterr().out
        monkeypatch.setattr(command, "part", None)  # nothing is done again
    assert "hostile texts, page" in (tmp_path / "table.md").read_text()


def test_what_went_wrong_is_told_and_ends_it_with_an_error(run, monkeypatch, capsys):
    broken = Tally(Counter(a=1, b=1), Counter(held=1), ["<script>"])
    monkeypatch.setattr(command, "part", lambda name: lambda given, folder: [("texts", broken)])
    with pytest.raises(SystemExit, match="texts: <script>"):
        run()
    assert "| texts | 2 | 1 | 2 kinds; held 1 |" in capsys.readouterr().out


def test_a_changed_byte_of_the_cache_changes_no_answer(tmp_path):
    found = corrupt_replies(tmp_path, cases=6, seed=1)
    assert found.wrong == []
    assert found.tried.total() == found.found.total() == 6
    assert found.found["without effect"] < 6
