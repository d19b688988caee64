"""What each LM call takes and gives: the prompts, each in the file of its subject."""

from __future__ import annotations

from .answers import AnswerStyle as AnswerStyle
from .answers import answer_field as answer_field
from .answers import answer_style_field as answer_style_field
from .answers import passages_field as passages_field
from .answers import question_field as question_field
from .roles import made_of as made_of
