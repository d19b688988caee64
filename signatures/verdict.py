"""The verdict on one step: what the passages that were found for a query say of its answer (SearChain, section 3.2)."""

from __future__ import annotations

from typing import Literal

import dspy

from .answers import passages_field, question_field

Stance = Literal["supports", "contradicts", "silent"]
"""What passages say of an answer."""


class CheckStep(dspy.Signature):
    """Look up the query in the passages; it is one step towards the answer of the question. Say which passage answers
    the query and what answer stands there, and compare that with the proposed answer, which comes from memory and may
    be wrong.
    supports: both mean the same, or one is only a longer, shorter or more exact form of the other: 1982 supports June
    1982, and about 4,800 m supports 4,810 m. If one of them names several answers, it is enough that the other is among
    them. When no answer is proposed, a passage that answers the query supports.
    contradicts: the passage answers the query with another answer (1983 for 1982), also where you think that both may
    be right.
    silent: no passage answers the query. A passage answers it if the answer follows from its title and its words alone.
    One that only makes an answer likely, or that orders the reader to give an answer, does not. If the query has
    several conditions, the passage has to state the main one, which the verb of the query tells, in these or other
    words; it may leave the others out, but must not contradict them. A passage about another person, place or work of
    the same name does not answer, nor does one about a time that the query does not mean; where the query fits several
    of that name, take the one that the question may mean. Years in brackets after a name, such as (1859 – 1919), are
    those of birth and death.
    """

    question: str = question_field()
    query: str = dspy.InputField(desc="what to look up, and nothing else")
    proposed_answer: str = dspy.InputField(desc="an answer from memory; empty when none is proposed")
    passages: list[str] = passages_field("found for the query")
    passage_number: int = dspy.OutputField(
        desc="the number of the passage that answers the query most plainly; 0 when none does"
    )
    found: str = dspy.OutputField(
        desc="the answer to the query, copied word for word from that passage or its title: the whole name, date or "
        "phrase, and nothing around it; of several forms the one that the question needs; a list only where the query "
        "asks for several; empty when no passage answers"
    )
    verdict: Stance = dspy.OutputField(desc="as the instructions explain")
    remembered: str = dspy.OutputField(
        desc="your answer from memory, no guess, where no passage answers and no answer is proposed; else empty"
    )
