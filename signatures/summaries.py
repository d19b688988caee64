"""Multi-hop search with summaries: what to search for next, a summary of the passages, and the answer from them."""

from __future__ import annotations

from typing import Any

import dspy

from .answers import QuestionInputs, answer_field, passages_field, question_field, sure_field, tried_field


def _summaries_field() -> Any:
    return dspy.InputField(
        desc="what earlier searches told; [3] is the number of the passage that told it; may be empty"
    )


class SummarizePassages(dspy.Signature):
    """Summarize what the passages tell toward the answer of the question, and nothing that no passage tells. Right
    after each fact, write the number of its passage as a mark: [3], or [3][5] for two passages. Some passages were
    shown before, with the same numbers. Do not repeat what the summaries tell.
    """

    question: str = question_field()
    summaries: list[str] = _summaries_field()
    passages: list[str] = passages_field()
    thoughts: str = dspy.OutputField(desc="which missing facts the passages tell")
    summary: str = dspy.OutputField(desc="whole sentences with their marks; empty when no passage adds anything")


class WriteQueryFromSummaries(dspy.Signature):
    """Write the search query for the next fact that the answer of the question needs and the summaries lack. You may
    use a name that you only guess. When no fact is missing, leave the query empty: no more searches are made.
    """

    question: str = question_field()
    summaries: list[str] = _summaries_field()
    tried: list[str] = tried_field()
    thoughts: str = dspy.OutputField(desc="what the summaries tell, and which fact is missing next")
    query: str = dspy.OutputField(desc="asks for one fact, complete in itself and unlike those tried; empty to end")


class AnswerFromSummaries(QuestionInputs):
    """Answer the question step by step from the summaries, and from what you know where they are silent.
    After each statement that a summary makes, copy the mark that follows it there, such as [3]. What you know or
    conclude yourself has no mark. Leave out what the answer does not need. Where two summaries contradict each other,
    or several things may be meant, say which you follow. If you guess, say so.
    """

    summaries: list[str] = _summaries_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
    sure: bool = sure_field()
