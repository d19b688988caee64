"""Fill a template with other people's text, which is escaped, so that none of it becomes markup."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..common.text import printable
from ..metrics import without_marks
from .tables import SELF_WRITTEN

_PAGES = Path(__file__).parents[1] / "pages"  # only files are taken from that room; comparisons are written here
STATIC = _PAGES / "static"
"""The folder of the stylesheet and the scripts, which a page asks for at ``static/``."""


def as_html(template: str, *, root: str | None = "/", **values: Any) -> str:
    """Return a page, or a part of one.

    Everything in ``values`` is escaped, and characters that reverse the writing direction are removed (`printable`).

    Args:
        template: a file of ``pages/templates``. A whole page extends ``base.html``.
        root: the path from this page to the folder of ``static/``: ``/`` at a server, ``../`` or empty in a folder;
            None for a page that is one file by itself, with its style in it.
        values: what the template names; one that is missing is an error.
    """
    style = Markup((STATIC / "questree.css").read_text(encoding="utf-8")) if root is None else ""
    return _templates().get_template(template).render(root=root, style=style, **values)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_PAGES / "templates"), autoescape=True, undefined=StrictUndefined, finalize=_shown
    )
    made.trim_blocks = made.lstrip_blocks = True
    made.filters["without_marks"], made.globals["SELF_WRITTEN"] = without_marks, SELF_WRITTEN
    return made


def _shown(value: Any) -> Any:
    """Return a value as it may be shown; markup of our own templates is not changed."""
    return printable(value) if type(value) is str else value
