"""The frame of every page: other people's text stays text."""

import re

import jinja2
import pytest
from hostile_text import HOSTILE

from questree.evaluation import html as rendering
from questree.pages import STATIC, as_html

PAGE = """{% extends "base.html" %}
{% block title %}{{ text }}{% endblock %}
{% block main %}<h1 class="{{ text }}">{{ text }}</h1>{% endblock %}"""


@pytest.fixture
def page(monkeypatch):
    """Put a page of its own beside the templates."""
    templates = rendering._templates()
    own = jinja2.ChoiceLoader([jinja2.DictLoader({"page.html": PAGE}), templates.loader])
    monkeypatch.setattr(templates, "loader", own)
    return "page.html"


def test_hostile_text_opens_no_element_and_turns_no_writing(page):
    html = as_html(page, text=HOSTILE)
    assert "<script" not in html
    assert "<img" not in html
    assert not re.search("[\u202e\x1b]", html)
    assert html.count("&lt;script&gt;document") == 3


def test_a_page_in_a_folder_asks_for_its_stylesheet_there(page):
    assert 'href="../static/questree.css"' in as_html(page, root="../", text="")
    assert (STATIC / "questree.css").is_file()


def test_a_value_that_is_missing_is_an_error(page):
    with pytest.raises(jinja2.UndefinedError):
        as_html(page)
