"""Reading and ranking: the LM in the place of a trained reader or reranker."""

from __future__ import annotations

import dspy

from .answers import passages_field
from .roles import made_of


class ReadPassage(dspy.Signature):
    """Find the answer to the query in the passage, word for word as it stands there."""

    query: str = dspy.InputField(desc="what is to be found")
    passages: list[str] = passages_field("found for the query")
    span: str = made_of(
        "a step read", dspy.OutputField(desc="copied from the passage; empty when it does not answer the query")
    )
    confidence: float = dspy.OutputField(desc="probability that the passage answers the query, from 0 to 1")


class RankPassages(dspy.Signature):
    """Rank the passages by how much they help to find what the query asks for: first those that state the answer, the
    plainest before the others; then those from which it follows, or that tell a part of it. A passage does not help if
    it only has the same subject, or is about a different thing of the same name or kind.
    """

    query: str = dspy.InputField(desc="what was searched for")
    passages: list[str] = passages_field("found for the query")
    ranking: str = dspy.OutputField(
        desc="the numbers of the passages that help, the most helpful first: [2] > [3] > [1]; or the word none"
    )
