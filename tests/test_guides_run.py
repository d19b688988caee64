"""The commands of each guide run in their order, with the simulated LM, and print what the guide shows below them."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest
from house import ROOT
from test_guides import DOCS, PAGES, blocks

ELSEWHERE = re.compile(  # what needs a key, a server, the network, minutes, or another program
    r"openai/|hf://|…|\bQUESTION\b|\b(hotpotqa|musique|nq|manual)\b|qdrant:|--checkpoint (?!embedded)"
    r"|^python benchmarks|^(?!questree|python|cd|cat|mkdir)|^questree (ui|serve|review|mcp|simulate|fetch)\b"
    r"|--from-feedback"
)
MADE = re.compile(r"\b(?:indexes|readers|runs|site|duplicates)/[\w-]+|\b[\w-]+\.capsule\b")
RUN = {
    *("README", "attacks", "audit", "capsules", "citations", "comparing", "compiling", "documents", "evidence-chain"),
    *("papers", "language-models", "lists-and-absence", "mlflow", "readers", "retrievers", "run-file", "serving"),
    *("your-own-code", "your-own-data", "your-own-questions", "your-own-service"),
}
GUIDES = [page for page in PAGES if page.stem in RUN and page != DOCS / "README.md"]


def commands(text: str) -> list[str]:
    """Return the commands of a block; a text for a file belongs to the command that writes it."""
    whole = re.sub(r"\\\n\s*", "", text)
    first = r"questree|python|cd|mkdir|make|mlflow|docker|curl|env|export|sqlite3|HF_TOKEN=…"
    return re.findall(rf"^cat > \S+ <<'END'\n[\s\S]*?^END$|^(?:{first}) .*$", whole, re.MULTILINE)


def plain(text: str) -> list[str]:
    """Return the lines that say something, without the lines of a table and what keeps its columns apart."""
    lines = (" ".join(re.sub("[│─]", " ", line).split()) for line in text.splitlines())
    return [line for line in lines if line]


def missing(shown: str, printed: str) -> list[str]:
    """Return the lines that are shown and not printed, in this order; … stands for anything."""
    lines, absent = iter(plain(printed)), []
    for line in plain(shown):
        pattern = ".*".join(map(re.escape, line.split("…")))
        kept = list(lines)
        place = next((at for at, one in enumerate(kept) if re.fullmatch(pattern, one)), None)
        absent += [line] if place is None else []
        lines = iter(kept if place is None else kept[place + 1 :])
    return absent


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_prints_what_it_shows(
    page, questree, workplace, own_cache, monkeypatch, tracking_store, for_all_workers
):
    for name in ("checkpoints", "indexes"):  # the whole checkpoint, and what it makes; replies are of this guide alone
        (made_once := for_all_workers / "guides" / name).mkdir(parents=True, exist_ok=True)
        (own_cache / name).unlink()
        (own_cache / name).symlink_to(made_once)
    tracking_store(workplace)
    shutil.copytree(ROOT / "examples", workplace / "examples")
    made, printed, tracked, wrong = set[str](), "", "", []
    every = [block for block in blocks(page) if not block.language]
    for number, block in enumerate(every):
        if not (typed := commands(block.text)):
            wrong += missing(block.text, printed) if printed else []
            printed = ""
            continue
        shown = every[number + 1].text if number + 1 < len(every) and not commands(every[number + 1].text) else ""
        longest = max(map(len, shown.splitlines()), default=0)
        monkeypatch.setenv("COLUMNS", str(80 if longest <= 80 else longest + 8))
        for line in typed:
            line = re.sub(r"runs:/[0-9a-f]{32}", f"runs:/{tracked}", line)
            needed = set(MADE.findall(line)) - set(MADE.findall(" ".join(re.findall(r"--out (\S+)", line))))
            if ELSEWHERE.search(line) or needed - made:
                continue
            made |= set(MADE.findall(line))
            said = run(line, questree, monkeypatch)
            tracked = "".join(re.findall(r"tracked as runs:/(\w+)", said)) or tracked
            printed += said
    assert wrong == [], "\n".join(wrong)


def run(line: str, questree, monkeypatch) -> str:
    """Run a command, and return what it printed."""
    if line.startswith("cd "):
        monkeypatch.chdir(line.removeprefix("cd ").split()[0])
        monkeypatch.syspath_prepend(".")
        return ""
    if line.startswith(("cat ", "mkdir ", "python ")):
        line = line.replace("python ", f"{shlex.quote(sys.executable)} ")
        return subprocess.run(["bash", "-ec", line], check=True, capture_output=True, text=True).stdout
    ran = questree(*shlex.split(line, comments=True)[1:])
    assert ran.code == 0, f"{line}\n{ran.err}"
    return ran.out
