"""Verify-and-Edit: a chain of thought checked sentence by sentence (Zhao et al., ACL 2023)."""

from __future__ import annotations

import dspy

from .answers import passages_field


class AskToVerify(dspy.Signature):
    """Ask what has to be looked up to know whether the sentence, taken from the reasoning, is true."""

    question: str = dspy.InputField(desc="what the reasoning is about")
    sentence: str = dspy.InputField()
    query: str = dspy.OutputField(desc="a question, complete in itself")


class EditSentence(dspy.Signature):
    """Write the sentence anew so that it answers the query truly, by the passages; leave it as it is where they
    do not tell.
    """

    query: str = dspy.InputField(desc="what was asked to verify the sentence")
    sentence: str = dspy.InputField()
    passages: list[str] = passages_field("found for the query")
    edited: str = dspy.OutputField(desc="one sentence, complete in itself")
    references: list[int] = dspy.OutputField(desc="numbers of the passages that it rests on; empty when none")
