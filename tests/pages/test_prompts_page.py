"""Prompts as a page, at a server or as one file."""

import dspy

from questree.pages.prompts_page import prompts_page
from questree.programs import build
from questree.programs.prompts import rendered_prompts


def test_the_page_folds_demonstrations_and_escapes_everything():
    program = build("direct", {})
    program.predictors()[0].demos = [dspy.Example(question="<b id=x>who", answer_style="short", answer="<i>me</i>")]
    page = prompts_page("A & B", rendered_prompts(program))
    assert "<b id" not in page
    assert all(text in page for text in ("&lt;b id=x&gt;who", "A &amp; B"))
    assert page.count('<details class="demo">') == 1


def test_the_page_of_two_programs_marks_what_differs():
    before, after = rendered_prompts(build("direct", {})), rendered_prompts(build("cot", {}))
    page = prompts_page("both", after, before=before)
    assert all(mark in page for mark in ("<del>", "<ins>", "2 of 2 prompts changed: instructions of 2."))
    same = prompts_page("same", before, before=before)
    assert "<del>" not in same
    assert "No prompt differs." in same


def test_one_file_asks_for_nothing_else_and_a_served_page_links_to_the_others():
    prompts = rendered_prompts(build("direct", {}))
    alone = prompts_page("alone", prompts)
    assert "<style>" in alone
    assert '<link rel="stylesheet"' not in alone
    served = prompts_page("served", prompts, programs=["direct", "a & b"])
    assert "<style>" not in served
    assert 'href="/prompts/a%20%26%20b"' in served
