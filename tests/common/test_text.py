"""Texts that say nothing, and those that only begin like one."""

from __future__ import annotations

import pytest

from questree.common.text import text_or_none

LONG = "The question is how the wall came to fall: in the summer of 1989 Hungary opened its border, and thousands left."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The question cannot be answered from the passages.", None),
        ("This question is not answerable", None),
        ("null", None),
        ("None needed.", None),
        ("No follow-up question is needed.", None),
        ("No further facts are missing", None),
        ("Nothing is missing.", None),
        ("No visa is needed", "No visa is needed"),
        ("Nothing", "Nothing"),
        (LONG, LONG),
        ("  The Unknown ", "The Unknown"),
    ],
)
def test_what_says_nothing_is_none(text, said):
    assert text_or_none(text) == said
