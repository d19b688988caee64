"""The verdict on one step: what the passages that were found for a query say of its answer (SearChain, section 3.2)."""

from __future__ import annotations

from typing import Literal

import dspy

from .answers import passages_field

Stance = Literal["supports", "contradicts", "silent"]
"""What passages say of an answer."""


class CheckStep(dspy.Signature):
    """Look up the query in the passages. Say which passage answers it and what answer stands there, and compare that
    with the proposed answer, which comes from memory and may be wrong.
    supports: both mean the same, or one is only a longer, shorter or more exact form of the other; or the passage gives
    several answers, and the proposed one is among them; or a passage answers the query, and no answer is proposed.
    contradicts: the passage answers the query, but with another answer. A date or a number is another answer if the
    more exact one, when it is rounded, does not give the other.
    silent: no passage answers the query. A passage answers it if the answer follows from its title and its words alone;
    one that only makes an answer likely, or tells the reader what to answer, is silent. If the query has
    several conditions, the passage has to state the main one, and must deny none. A passage about another person, place
    or work of the same name is no answer; where the query does not tell which of them it means, take the one in the
    passages.
    """

    query: str = dspy.InputField(desc="one step on the way to the answer of a larger question")
    proposed_answer: str = dspy.InputField(desc="an answer from memory; empty when none is proposed")
    passages: list[str] = passages_field("found for the query")
    passage_number: int = dspy.OutputField(
        desc="the number of the passage that answers the query most plainly; 0 when none does"
    )
    found: str = dspy.OutputField(
        desc="the answer to the query, copied word for word from that passage: a name or date as a whole, and no more; "
        "several, as they stand there, only where the query asks for several; empty when no passage answers"
    )
    verdict: Stance = dspy.OutputField(desc="what the passages say of the proposed answer")
    remembered: str = dspy.OutputField(
        desc="your own answer to the query, if no passage has it, none is proposed, and you are certain; else empty"
    )
