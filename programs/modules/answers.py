"""Answers that a predictor gives with reasoning; their marks are settled at once."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import dspy

from ...lm.call import call
from ...lm.window import shown_of
from ...retrieval import Passage
from ..demonstrations import note
from ..references import Belongs, kept_all_marks, numbered, settle_marks, supported_by
from ..streams import Writing


class CitedAnswer(NamedTuple):
    """An answer, its final content, the references, and whether the LM is sure: it did not say that it guesses."""

    answer: str
    content: str
    references: list[Passage]
    sure: bool = True


def cited_answer(
    predict: dspy.Predict,
    passages: list[Passage],
    config: dict[str, float] | None = None,
    belongs: Belongs | None = None,
    kind: str = "",
    /,
    **inputs: Any,
) -> CitedAnswer:
    """Call a predictor and return its answer, its final content, and the references: ``[n]`` is ``references[n-1]``.

    A mark that its passage does not support is removed; such a reply is no demonstration. The passages are shown if
    the predictor's signature has them. ``config`` has options of the LM for this call, such as a temperature;
    ``belongs`` tells whether a fragment may cite a passage; if it is None, their words tell. ``kind`` is noted on the
    reply.
    """
    if "passages" in predict.signature.input_fields:
        inputs["passages"] = numbered(passages)
    rule = belongs or supported_by(inputs["question"])
    settle = partial(settle_marks, references=passages, belongs=rule)
    reply = call(predict, config, writing=partial(Writing, settle), **inputs)
    final_content, references = settle_marks(reply.final_content, shown_of(passages, reply), rule)
    note(reply, kind, exemplary=kept_all_marks(reply.final_content, final_content))
    return CitedAnswer(reply.answer, final_content, references, bool(reply.get("sure", True)))
