"""README and guides say what is there: commands parse, Python compiles, names and links exist. No LM is asked."""

import ast
import re
import shlex
from functools import lru_cache
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


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


@lru_cache
def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(language, dedent(text)) for language, text in found]


@lru_cache
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


# What is wrong with a page


def commands_that_do_not_parse(page: Path) -> dict[str, str]:
    lines = [(line, True) for line in typed(page) if line.startswith("questree")]
    lines += [(span.replace("…", ""), False) for span in spans(prose(page)) if span.startswith("questree ")]
    return {line: why for line, complete in lines if (why := fault(line, complete=complete))}


def unknown_options(page: Path) -> set[str]:
    return set(re.findall(r"^--[a-z-]+", "\n".join(spans(prose(page))), re.MULTILINE)) - every_option()


def unknown_targets_and_scripts(page: Path) -> set[str]:
    said = "\n".join([*typed(page), *spans(prose(page))])
    targets = set(re.findall(r"^make ([a-z-]+)", said, re.MULTILINE))
    targets -= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    scripts = set(re.findall(r"^python (\S+\.py)", said, re.MULTILINE))
    scripts |= {name.replace(".", "/") for name in re.findall(r"^python -m (benchmarks\S*)", said, re.MULTILINE)}
    return targets | {name for name in scripts if not (ROOT / name).exists()}


def python_that_imports_nothing(page: Path) -> list[str]:
    return [name for block in blocks(page) if block.language == "python" for name in unknown_names(block.text)]


def unknown_names(code: str) -> list[str]:
    """Return the names of ours that a piece of Python uses and that are not there."""
    nodes = list(ast.walk(compile(code, "a piece", "exec", ast.PyCF_ONLY_AST)))
    used = [f"{node.module}.{one.name}" for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names]
    used += [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
    return missing([name for name in used if re.fullmatch(r"questree(\.\w+)+", name)])


def unknown_names_in_prose(page: Path) -> list[str]:
    names = {name for span in spans(prose(page)) for name in re.findall(r"^questree(?:\.\w+)+", span)}
    return missing(sorted(name for name in names if not name.endswith((".json", ".toml"))))


def absent_files(page: Path) -> list[str]:
    inside = re.compile(rf"(?:{'|'.join([*ROOMS, 'tests', 'docs', 'examples', 'benchmarks'])})/[\w./-]*")
    return [span for span in spans(prose(page)) if inside.fullmatch(span) and not (ROOT / span).exists()]


def variables_that_nothing_reads(page: Path) -> set[str]:
    ours = {f"QUESTREE_{name.upper()}" for name in RunSettings.model_fields}
    names = set(re.findall(r"QUESTREE_[A-Z_]+", page.read_text(encoding="utf-8"))) - ours
    return {name for name in names if name not in every_source()}


def dead_links(page: Path) -> list[str]:
    def leads(target: str) -> bool:
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        return path.exists() and (not anchor or anchor in anchors(path))

    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if "://" not in target and not leads(target)]


@lru_cache
def every_option() -> set[str]:
    return options(COMMANDS)


@lru_cache
def every_source() -> str:
    return "".join((ROOT / path).read_text(encoding="utf-8") for path in package_files())


WRONG = (commands_that_do_not_parse, unknown_options, unknown_targets_and_scripts, python_that_imports_nothing,
         unknown_names_in_prose, absent_files, variables_that_nothing_reads, dead_links)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_no_page_has(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {page.name: found for page in PAGES if (found := wrong(page))} == {}


def test_every_settings_file_can_be_read(tmp_path):
    texts = [block.text for page in PAGES for block in blocks(page) if block.language == "toml"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.toml").write_text(text)
        run_settings(tmp_path / f"{number}.toml")


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


def test_guides_name_all_there_is():
    compiling = prose(DOCS / "compiling.md")
    assert set(OPTIMIZERS) <= first_column(section(DOCS / "compiling.md", "Optimizers")), compiling
    assert first_column(section(DOCS / "retrievers.md", "Kinds")) <= {"auto", *KINDS}
    assert set(DEFENCES) == first_column(section(DOCS / "attacks.md", "Defences"))
    names = set(spans(section(DOCS / "your-own-data.md", "Questions")))
    assert set(METRICS) - {"cover-em-characters"} <= names
    tasks = {task for page in PAGES for task in re.findall(r"--task ([a-z0-9]+):", page.read_text(encoding="utf-8"))}
    assert tasks <= set(KNOWN_TASKS)


PYTHON = DOCS / "python.md"
PREDICTION = {
    *answered(ReasoningTree(question="?"), "", "", []).keys(),
    *("answers", "others", "nearest", "rests_on"),
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
