"""The site names each page of docs/ once, and what its hooks make is true. `make site` builds it, strictly."""

import importlib.util
import re
from types import SimpleNamespace

import pytest
from house import ROOT

import questree

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site():
    """The hooks of the site's build."""
    spec = importlib.util.spec_from_file_location("questree_site", DOCS / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_stands_once_in_the_menu():
    menu = re.findall(r"- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(menu) == sorted([*(page.name for page in DOCS.glob("*.md")), "reference.md"])


def test_the_reference_describes_every_public_name(site):
    described = re.findall(r"^::: questree\.(\w+)$", site.reference(), re.MULTILINE)
    assert set(described) == {name for name in dir(questree) if not name.startswith("_")}


def test_llms_txt_leads_to_pages(site):
    pages = re.findall(r"\]\((.*?)/\)", site.llms())
    assert len(pages) > 20
    assert all((DOCS / f"{page}.md").exists() for page in pages)


@pytest.mark.parametrize(
    ("repository", "becomes"),
    [("https://forge.org/q/", "[S](https://forge.org/q/blob/main/SECURITY.md)"), ("", "S"), (None, "S")],
)
def test_links_that_leave_the_docs_lead_to_the_repository(site, repository, becomes):
    written = site.on_page_markdown("[S](../SECURITY.md) [r](retrievers.md)", SimpleNamespace(repo_url=repository))
    assert written == f"{becomes} [r](retrievers.md)"


def test_the_capsules_that_were_made_are_offered(site, tmp_path, monkeypatch):
    capsules = SimpleNamespace(file=SimpleNamespace(src_uri="capsules.md"))
    monkeypatch.setattr(site, "CAPSULES", tmp_path)
    config = SimpleNamespace(repo_url="")
    assert site.on_page_markdown("# Capsules", config, page=capsules) == "# Capsules"
    (tmp_path / "mini.capsule").write_bytes(b"x" * 200_000)
    offered = site.on_page_markdown("# Capsules", config, page=capsules)
    assert "- [mini.capsule](mini.capsule), 0.2 MB: `questree replay mini.capsule`" in offered


def test_a_warning_of_the_build_is_an_error():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"bin/mkdocs build$", makefile, re.MULTILINE), "with --quiet, mkdocs counts no warning"
    assert "strict: true" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
