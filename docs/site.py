"""Hooks of the site's build: the reference of the public names, llms.txt, and links to files outside docs/."""

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CAPSULES = ROOT / "build" / "capsules"


def on_files(files: Any, config: Any) -> Any:
    """Add what is made: the reference, llms.txt, and the capsules of `make site`."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference.md", content=reference()))
    files.append(File.generated(config, "llms.txt", content=llms()))
    for capsule in CAPSULES.glob("*.capsule"):
        files.append(File.generated(config, capsule.name, abs_src_path=str(capsule)))
    return files


def on_page_markdown(markdown: str, config: Any, page: Any = None, **_: Any) -> str:
    """Let links that leave docs/ lead to the repository, or be text where none is known (QUESTREE_REPOSITORY)."""
    if page and page.file.src_uri == "capsules.md":
        markdown += downloads()
    to = rf"[\1]({config.repo_url.rstrip('/')}/blob/main/\2)" if config.repo_url else r"\1"
    return re.sub(r"\[([^]]+)\]\(\.\./([^)]+)\)", to, markdown)


def reference() -> str:
    """Return the page that describes each public name of `questree` by its docstring."""
    package = ast.parse((ROOT / "api" / "__init__.py").read_text(encoding="utf-8"))
    typed = [node for block in package.body if isinstance(block, ast.If) for node in block.body]
    names = [each.asname for node in typed if isinstance(node, ast.ImportFrom) for each in node.names]
    names += [node.name for node in package.body if isinstance(node, ast.FunctionDef)]
    public = sorted(name for name in names if name and not name.startswith("_"))
    return "\n".join(["# Reference", "", *(f"::: questree.{name}" for name in public)])


def downloads() -> str:
    """Return the section that offers the capsules that `make site` has made; empty if it has made none."""
    found = sorted(CAPSULES.glob("*.capsule"))
    lines = [
        f"- [{one.name}]({one.name}), {one.stat().st_size / 1e6:.1f} MB: `questree replay {one.name}`" for one in found
    ]
    told = "Of the bundled questions, with the simulated LM: their numbers say nothing about a method."
    return "\n".join(["", "## To download", "", told, "", *lines, ""]) if found else ""


def llms() -> str:
    """Return llms.txt: what this is, and a line for each page."""
    lines = (ROOT / "docs" / "README.md").read_text(encoding="utf-8").replace(".md)", "/)").splitlines()
    about = "Questree: multi-hop question answering as DSPy programs, compiled, tracked and cited."
    return "\n".join(["# Questree", "", f"> {about}", "", *(line for line in lines if line.startswith(("## ", "- [")))])
