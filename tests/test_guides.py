"""README and guides say what is there: commands parse, Python compiles, names and links exist. No LM is asked."""

from __future__ import annotations

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple, get_args

import pytest
import typer
from house import ROOMS, ROOT, package_files

import questree
from questree.cli import app
from questree.data import KNOWN_TASKS
from questree.evaluation import Evaluation, Record
from questree.lm.episode import Dropped
from questree.lm.failure import Cause, Failure
from questree.lm.spent import Spent
from questree.metrics import METRICS
from questree.optimize import OPTIMIZERS
from questree.programs import PROGRAMS, Node, ReasoningTree, answered
from questree.retrieval import KINDS, Passage
from questree.retrieval.defences import DEFENCES
from questree.settings import RunSettings, run_settings

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
COMMANDS: Any = typer.main.get_command(app)
COMMANDS.commands = {name: COMMANDS.get_command(None, name) for name in COMMANDS.list_commands(None)}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(language, dedent(text)) for language, text in found]


def prose(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def spans(text: str) -> list[str]:
    """Return what stands between backticks."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def typed(page: Path) -> list[str]:
    """Return the lines that a reader of the page would type."""
    lines = [
        line for block in blocks(page) if not block.language for line in block.text.replace("\\\n", " ").split("\n")
    ]
    return [line for line in lines if re.match(r"(questree|make|python|mlflow) ", line)]


def fault(command: str, *, complete: bool) -> str | None:
    """Return why the command line does not parse, or None if it does; a mention need not be complete."""
    (_, *words), found = shlex.split(command, comments=True), COMMANDS
    while words and words[0] in getattr(found, "commands", ()):
        found = found.commands[words.pop(0)]
    if found is COMMANDS and words and not words[0].startswith("-"):
        return None if words[0].isupper() else f"there is no command {words[0]}"
    try:
        found.make_context(found.name, words, resilient_parsing=not complete)
    except Exception as problem:
        return getattr(problem, "message", None) or repr(problem)
    return None


def options(command: Any) -> set[str]:
    """Return every option of a command and of those below it."""
    below = getattr(command, "commands", {}).values()
    whole = command if below else command.make_context(command.name, [], resilient_parsing=True).command
    named = {name for one in whole.params for name in (*one.opts, *one.secondary_opts)}
    return named.union(*map(options, below))


def section(page: Path, heading: str) -> str:
    """Return the text from a heading to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", prose(page), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no heading {heading}"
    return found[1]


def first_column(text: str) -> set[str]:
    """Return the names in the first column of the tables, without the heads and what stands in brackets."""
    rows = re.findall(r"^\|([^|\n]*)\|.*\n(?!\|---)", re.sub(r"^\|---.*", "|---|", text, flags=re.M), re.MULTILINE)
    return {name.partition("(")[0] for row in rows for name in spans(re.sub(r" \([^()]*\)", "", row))}


def resolved(dotted: str) -> Any:
    """Return what a dotted name stands for; raise an AttributeError or an ImportError if there is no such thing."""
    found, *rest = dotted.split(".")
    value, path = import_module(found), found
    for name in rest:
        path = f"{path}.{name}"
        value = getattr(value, name) if hasattr(value, name) else import_module(path)
    return value


def missing(dotted: list[str]) -> list[str]:
    def there(name: str) -> bool:
        try:
            resolved(name)
        except (AttributeError, ImportError):
            return False
        return True

    return [name for name in dotted if not there(name)]


@pages
def test_every_command_can_be_typed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line for line in typed(page) if line.startswith("questree")]
    assert {line: why for line in lines if (why := fault(line, complete=True))} == {}


@pages
def test_every_command_that_is_mentioned_is_there(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mentioned = [span.replace("…", "") for span in spans(prose(page)) if span.startswith("questree ")]
    assert {line: why for line in mentioned if (why := fault(line, complete=False))} == {}


@pages
def test_every_option_that_is_mentioned_is_there(page):
    mentioned = {name for span in spans(prose(page)) for name in re.findall(r"^--[a-z-]+", span)}
    assert mentioned - options(COMMANDS) == set()


@pages
def test_what_make_and_python_are_given_is_there(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    said = [*typed(page), *spans(prose(page))]
    assert {name for line in said for name in re.findall(r"^make ([a-z-]+)", line)} - set(targets) == set()
    scripts = {name for line in said for name in re.findall(r"^python (\S+\.py)", line)}
    scripts |= {name.replace(".", "/") for line in said for name in re.findall(r"^python -m (benchmarks\S*)", line)}
    assert {name for name in scripts if not (ROOT / name).exists()} == set()


@pages
def test_python_compiles_and_imports_what_there_is(page):
    for code in [block.text for block in blocks(page) if block.language == "python"]:
        tree = ast.parse(code)
        compile(tree, str(page), "exec")
        nodes = list(ast.walk(tree))
        imported = [
            f"{node.module}.{one.name}" for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names
        ]
        used = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
        ours = [name for name in [*imported, *used] if re.fullmatch(r"questree(\.\w+)+", name)]
        assert missing(ours) == []


@pages
def test_every_name_of_the_package_is_there(page):
    names = {name for span in spans(prose(page)) for name in re.findall(r"^questree(?:\.\w+)+", span)}
    assert missing(sorted(name for name in names if not name.endswith((".json", ".toml")))) == []


@pages
def test_every_file_of_the_house_is_there(page):
    inside = re.compile(rf"(?:{'|'.join([*ROOMS, 'tests', 'docs', 'examples', 'benchmarks'])})/[\w./-]*")
    named = {span for span in spans(prose(page)) if inside.fullmatch(span)}
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pages
def test_every_variable_is_read(page):
    sources = "".join((ROOT / path).read_text(encoding="utf-8") for path in package_files())
    names = set(re.findall(r"QUESTREE_[A-Z_]+", page.read_text(encoding="utf-8")))
    ours = {name for name in names if name.removeprefix("QUESTREE_").lower() in RunSettings.model_fields}
    assert {name for name in names - ours if name not in sources} == set()


@pages
def test_every_settings_file_can_be_read(page, tmp_path):
    for number, block in enumerate(block for block in blocks(page) if block.language == "toml"):
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text)
        run_settings(file)


@pages
def test_every_link_leads_somewhere(page):
    def there(target: str) -> bool:
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        return path.exists() and (not anchor or anchor in anchors(path))

    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    assert [target for target in targets if "://" not in target and not there(target)] == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_lists_every_page():
    assert set(re.findall(r"\]\((\S+?\.md)\)", prose(DOCS / "README.md"))) == {
        p.name for p in PAGES if p.parent == DOCS
    } - {"README.md"}


@pytest.mark.parametrize("name", re.findall(r"\]\((\S+?\.md)\)", section(DOCS / "README.md", "Guides")))
def test_a_guide_begins_with_what_runs_offline(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    first = blocks(DOCS / name)[0]
    assert re.match(r"# .+\n\n(.+\n)?\n*```", text), "a title, at most a line, then the block"
    assert first.language in {"", "python"}
    assert "…" not in first.text
    assert set(re.findall(r"--lm (\S+)", first.text)) <= {"simulated"}
    assert "--api-base" not in first.text
    assert "--checkpoint" not in first.text


def test_readme_and_guides_name_all_there_is():
    readme, compiling = prose(ROOT / "README.md"), prose(DOCS / "compiling.md")
    assert {name for name in PROGRAMS if f"`{name}`" not in readme} == set()
    assert set(OPTIMIZERS) <= first_column(section(DOCS / "compiling.md", "Optimizers")), compiling
    assert set(KINDS) <= first_column(section(DOCS / "retrievers.md", "Kinds"))
    assert set(DEFENCES) == first_column(section(DOCS / "attacks.md", "Defences"))
    names = set(spans(section(DOCS / "your-own-data.md", "Questions")))
    assert set(METRICS) - {"cover-em-characters"} <= names
    tasks = {task for page in PAGES for task in re.findall(r"--task ([a-z0-9]+):", page.read_text(encoding="utf-8"))}
    assert tasks <= set(KNOWN_TASKS)


PYTHON = DOCS / "python.md"
PREDICTION = {
    *answered(ReasoningTree(question="?"), "", "", []).keys(),
    "rests_on",
    "seen",
    "spent",
    "dropped",
    "seconds",
}
EVALUATION = {name for name in {*dir(Evaluation), *Evaluation.__dataclass_fields__} if not name.startswith("_")}


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("A prediction", PREDICTION),
        ("Passage", set(Passage.model_fields)),
        ("Failure", {*Failure.model_fields, *get_args(Cause)}),
        ("Spent", set(Spent.model_fields)),
        ("Dropped", set(Dropped.model_fields)),
        ("Node", set(Node.model_fields)),
        ("An evaluation", EVALUATION),
        ("Record", set(Record.model_fields)),
        (
            "Settings of the methods",
            {
                name
                for kind in ("searchain", "tree-of-reviews", "blendfilter")
                for name in PROGRAMS[kind].Settings.model_fields
            },
        ),
    ],
)
def test_every_field_is_explained(heading, fields):
    assert first_column(section(PYTHON, heading)) == fields


def test_the_public_names_are_those_of_the_package():
    table, rooms = section(PYTHON, "The public names").split("| room |")
    assert first_column(table) == {f"questree.{name}" for name in dir(questree)}
    for room, names in re.findall(r"^\| `(questree\.\w+)` \| (.+) \|$", rooms, re.MULTILINE):
        named = [re.sub(r"\(.*", "", name) for name in spans(names)]
        assert missing([f"{room}.{name}" for name in named]) == []
