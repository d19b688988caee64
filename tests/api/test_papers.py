"""The commands of docs/papers.md, each at tiny size: the bundled questions, the simulated LM, one question."""

import re
import shlex

import pytest
from house import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"\| `questree ((?:compare|analyse) [^`]+)` \|", PAGE)))
TOO_LARGE = {"--task": "mini", "--reader": None, "--lm": None, "--api-base": None}  # what a machine like this lacks


def at_tiny_size(command: str) -> list[str]:
    words, small = shlex.split(command), []
    while words:
        word = words.pop(0)
        value = words.pop(0) if word in TOO_LARGE else None
        if (instead := TOO_LARGE.get(word, value)) or word not in TOO_LARGE:
            small += [word, instead] if word in TOO_LARGE else [word]
    return [*small, "--limit", "1", "--tracking-uri", "none"] if small[0] == "compare" else small


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_is_made(command, questree, index):
    if "runs/compared" in command:
        programs = ["searchain", "searchain-without-retrieval", "direct"]
        scored = ["--metric", "cover-em", "--metric", "rouge-l", "--limit", "3", "--tracking-uri", "none"]
        questree("compare", *programs, "--retriever", index, *scored, "--out", "runs/compared").done()
    given = ["--retriever", index] if command.startswith("compare") else ["--right", "0"] if "misled" in command else []
    questree(*at_tiny_size(command), *given).done()
