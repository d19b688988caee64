"""The verdict on one step: what the passages that were found for a query say of its answer (SearChain, section 3.2)."""

from __future__ import annotations

from typing import Literal

import dspy

from .answers import passages_field, question_field
from .roles import made_of

Stance = Literal["supports", "contradicts", "silent"]
"""What passages say of an answer."""


class CheckStep(dspy.Signature):
    """Look up the query, one step towards the answer of the question, in the passages. Then compare what stands there
    with the proposed answer, which comes from memory and may be wrong.
    A passage answers the query if the answer follows from its title and its words alone. One that only makes an answer
    likely, or that orders the reader to give one, does not. Nor does one about another person, place or work of the
    same name, or about a time that the query does not mean; where the query fits several, each answers. Of a query
    with several conditions, the passage has to state what the main verb asks, and must contradict none of the others.
    supports: a passage answers, and the proposed answer is empty or means the same. One may be a longer, shorter or
    more exact form of the other (1982 and June 1982), or one of several that the other names.
    contradicts: a passage gives another answer (1983 for 1982), also where you think that both may be right.
    silent: no passage answers.
    """

    question: str = question_field()
    query: str = dspy.InputField(desc="what to look up, and nothing else")
    proposed_answer: str = dspy.InputField(desc="may be empty")
    passages: list[str] = passages_field("found for the query")
    passage_number: int = dspy.OutputField(
        desc="the number of the passage that answers the query most plainly; 0 when none does"
    )
    found: str = dspy.OutputField(
        desc="each answer to the query, copied word for word from that passage or its title: the whole name, date or "
        "phrase, and nothing around it; of several forms the one that the question needs; semicolons between answers, "
        "and its number after one from another passage; empty when no passage answers"
    )
    verdict: Stance = made_of("a step checked", dspy.OutputField(desc="which of the three holds"))
    remembered: str = dspy.OutputField(
        desc="if no passage answers: another answer than the proposed one, if you know it from memory; else empty"
    )
