"""The commands of each guide run in their order, with the simulated LM, and print what the guide shows below them."""

import html
import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from house import ROOT
from test_guides import DOCS, PAGES, blocks

from questree.data.question_files import raw_rows, read_questions

ELSEWHERE = re.compile(  # what needs a key, a server, the network, minutes, or another program
    r"openai/|hf://|…|\bQUESTION\b|\b(hotpotqa|musique|nq|manual)\b|qdrant:|--checkpoint (?!embedded)"
    r"|^python benchmarks|^(?!questree|python|cd|cat|mkdir)|^questree (ui|serve|review|mcp|simulate|fetch)\b"
    r"|--from-feedback"
)
WHOLE = "your-own-questions"  # the guide whose servers are started, and asked as it says
MADE = re.compile(r"\b(?:indexes|readers|runs|site|duplicates)/[\w-]+|\b[\w-]+\.capsule\b")
RUN = {
    *("README", "attacks", "audit", "capsules", "citations", "comparing", "compiling", "documents", "evidence-chain"),
    *("papers", "language-models", "lists-and-absence", "mlflow", "readers", "retrievers", "run-file", "serving"),
    *("your-own-code", "your-own-data", "your-own-questions", "your-own-service"),
}
NOTE = "it is the other town"
GUIDES = [page for page in PAGES if page.stem in RUN and page != DOCS / "README.md"]


def commands(text: str) -> list[str]:
    """Return the commands of a block; a text for a file belongs to the command that writes it."""
    whole = re.sub(r"\\\n\s*", "", text)
    first = r"questree|python|cd|cat|mkdir|make|mlflow|docker|curl|env|export|sqlite3|HF_TOKEN=…"
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


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=() if page.stem == WHOLE else pytest.mark.slow) for page in GUIDES],
)
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
    every, served = [block for block in blocks(page) if not block.language], Served()
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
            if needed - made or (page.stem != WHOLE and ELSEWHERE.search(line)):
                continue
            made |= set(MADE.findall(line))
            made |= {"runs/questions"} if line.startswith("questree serve ") else set()
            said = served.does(line) if served.takes(line) else run(line, questree, monkeypatch)
            tracked = "".join(re.findall(r"tracked as runs:/(\w+)", said)) or tracked
            printed += said
    served.close()
    assert wrong == [], "\n".join(wrong)
    if page.stem == WHOLE:
        check_the_loop()


def check_the_loop() -> None:
    """Look at what a person left of the questions, what people said, and that a program was compiled with both."""
    own, said, every = (read_questions(Path(f"{name}.jsonl")) for name in ("handbook", "feedback", "all"))
    assert Counter(row.get("review", "open") for row in raw_rows(Path("handbook.jsonl"))) == {
        **{"keep": 1, "mend": 1, "drop": 1},
        "open": 17,
    }
    assert (len(own), len(said), len(every)) == (19, 2, 21)
    assert [bool(one.answers) for one in said] == [True, True]
    assert [one.to_example().get("feedback", "").rpartition(": ")[2] for one in said].count(NOTE) == 1
    assert list(Path("runs/with-feedback/program").iterdir())


class Served:
    """The servers of a guide, each on a free port, and the person who asks them."""

    def __init__(self) -> None:
        self._open, self._address, self._id = ExitStack(), "", ""

    def takes(self, line: str) -> bool:
        return line.startswith(("questree serve ", "questree review ", "curl "))

    def does(self, line: str) -> str:
        """Start a server, go through its questions, or send what curl would; return what came back."""
        if line.startswith("curl "):
            return self._sends(shlex.split(line)[1:])
        serving = self._serving(shlex.split(line)[1:])
        if line.startswith("questree review "):
            with serving as address:
                return review_at(address)
        self._address = self._open.enter_context(serving)
        return ""

    def close(self) -> None:
        self._open.close()

    @contextmanager
    def _serving(self, words: list[str]):
        command = [sys.executable, "-c", "from questree.cli import main; main()", *words, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield re.findall(r"http://[\d.]+:\d+", process.stdout.readline())[0]  # said once it listens
            finally:
                process.terminate()

    def _sends(self, words: list[str]) -> str:
        address = words[0].replace("http://127.0.0.1:8080", self._address).replace("ID", self._id)
        headers = dict(value.split(": ") for flag, value in itertools.pairwise(words) if flag == "-H")
        data = "&".join(value for flag, value in itertools.pairwise(words) if flag in ("-d", "--data"))
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = httpx.post(address, content=data, headers=form | headers, timeout=120)
        assert reply.status_code in (200, 303), reply.text
        self._id = reply.json()["id"] if address.endswith("/ask") else self._id
        return reply.text


def review_at(address: str) -> str:
    """Keep a question, mend the next, drop the third, and give the right answer where there is none."""
    for decision, words in (("keep", ""), ("keep", "Please tell me: "), ("drop", "")):
        page = httpx.get(address).text
        if ", 0 to go" in page:
            break
        fields = dict(re.findall(r'<textarea id="\w+" name="(\w+)".*?>(.*?)</textarea>', page, re.DOTALL))
        fields |= dict(re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)">', page))
        form = {name: html.unescape(value) for name, value in fields.items()} | {"decision": decision}
        form |= {"question": words + form["question"], "answers": form["answers"] or "Vienna"}
        assert httpx.post(f"{address}/", data=form).status_code == 303
    return page


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
