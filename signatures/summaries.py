"""Multi-hop search with summaries: what to search for next, a summary of the passages, and the answer from them."""

from __future__ import annotations

from typing import Any

import dspy

from .answers import answer_field, answer_style_field, passages_field, question_field


def _summaries_field() -> Any:
    return dspy.InputField(desc="of what earlier searches found, with the numbers of its passages; may be empty")


class SummarizePassages(dspy.Signature):
    """Summarize what the passages tell toward the answer of the question, and nothing that no passage tells. Right
    after each fact, write the number of its passage as a mark: [3], or [3][5] for two passages. Passages may come
    again: leave out what the summaries tell already.
    """

    question: str = question_field()
    summaries: list[str] = _summaries_field()
    passages: list[str] = passages_field()
    thoughts: str = dspy.OutputField(desc="what the question needs, and which passages tell it")
    summary: str = dspy.OutputField(desc="whole sentences with their marks; empty when no passage tells more")


class WriteQueryFromSummaries(dspy.Signature):
    """Write the search query for the next fact that the answer of the question needs and the summaries lack. A name
    that you guess may stand in the query. When the summaries lack none, look for a second source of the fact that is
    least certain.
    """

    question: str = question_field()
    summaries: list[str] = _summaries_field()
    thoughts: str = dspy.OutputField(desc="what the summaries tell, and what is missing")
    query: str = dspy.OutputField(desc="asks for one fact, complete in itself and unlike the question")


class AnswerFromSummaries(dspy.Signature):
    """Answer the question step by step from the summaries, and from what you know where they are silent.
    Right after the words that a summary says, write its mark, such as [3], as it stands there. What you know or
    conclude yourself has no mark. Leave out what the answer does not need. Where two summaries contradict each other,
    say which you follow. Say so where you guess.
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    summaries: list[str] = _summaries_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
