"""What `make study` asks, and what it says beforehand that this takes."""

import json
import re
import sys

import published_rows as rows
import pytest
import study

from questree.data import DATA_VARIABLE, load_task


@pytest.fixture
def world(questree, workplace, monkeypatch):
    """A world of PhantomWiki's generator, fetched from its files; its questions want one name or several."""
    names = rows.PHANTOMWIKI["answer"]
    told = [{"id": f"pw{n}", "question": f"Who is friend {n}?", "answer": names[: 1 + n % 2]} for n in range(60)]
    questions = [{**rows.PHANTOMWIKI, **one} for one in told]
    for name, content in {"questions": questions, "articles": rows.PHANTOMWIKI_ARTICLES}.items():
        (workplace / f"{name}.json").write_text(json.dumps(content))
    (workplace / "data").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(workplace / "data"))
    questree("fetch phantomwiki --from questions.json --from articles.json").done()
    return workplace


@pytest.fixture
def made(questree, monkeypatch, capsys):
    """Run the study as `make study` does, its commands in this process; returns what it prints."""
    commands = []

    def run_questree(*words):
        commands.append(" ".join(map(str, words)))
        questree("", *words).done()

    def make(*words):
        monkeypatch.setattr(study, "run_questree", run_questree)
        monkeypatch.setattr(sys, "argv", ["study.py", *words])
        study.main()
        return capsys.readouterr().out, commands

    return make


def test_a_rehearsal_of_an_invented_world_says_what_the_whole_takes(made, world):
    words = ["--task", "phantomwiki", "--program", "evidence-chain", "--dry-run"]
    told, commands = made("--lm", "openai/gpt-4.1-mini", *words)
    metrics = [re.findall(r"--metric (\S+)", one) for one in commands if one.startswith("compare")]
    assert metrics == [["by-style"], ["by-style"]]  # F1 takes one of several names for all of them
    count, compiling = len(load_task("phantomwiki").split("dev")), 2 * 2 * study.REHEARSED
    assert 5 < count < 1000
    assert f"In all: {4 * count + compiling} calls, " in told  # each question takes one
    assert re.search(r"of prompts and \d\S+ of replies, \$0\.0[1-9] \(openai/gpt-4\.1-mini; ", told)
    assert "The simulated LM knows no step of phantomwiki: there, a model may take twice as many calls." in told
    fewer, _ = made("--lm", "openai/of-ones-own", *words, "--limit", "6")
    assert f"In all: {4 * 6 + compiling} calls, " in fewer
    assert "no price is known" in fewer


def test_a_task_of_single_answers_is_scored_by_f1_and_em():
    assert study.metrics("mini") == ["--metric", "f1", "--metric", "em"]
