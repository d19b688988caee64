"""Reasoning that searches on its way.

Toolformer (Schick et al., NeurIPS 2023), ReAct (Yao et al., ICLR 2023), IRCoT (Trivedi et al., ACL 2023),
Demonstrate-Search-Predict (Khattab et al., 2022).
"""

from __future__ import annotations

import dspy

from .answers import answer_field, answer_style_field, passages_field, question_field


class WriteOrSearch(dspy.Signature):
    """Go on writing the text that reasons towards the answer of the question. Where you come to a fact that is
    better looked up, stop there and call for a search: its result will be put into the text.
    After each fragment that rests on a result, write its number as a mark: [1].
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    written: list[str] = dspy.InputField(desc="the text so far, with the results of its searches")
    continuation: str = dspy.OutputField(desc="what comes next in the text")
    search: str | None = dspy.OutputField(desc="what to look up, complete in itself; null at the end of the text")
    answer: str | None = dspy.OutputField(
        desc="the answer alone, in the form that it should have; null when a search is called"
    )


class AnswerByActing(dspy.Signature):
    """Find out the answer of the question by searching an encyclopedia, one fact after the other. In the reasoning
    for the answer, write the number of a passage as a mark after each fragment that rests on it: [1].
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    answer: str = dspy.OutputField(desc="the answer alone, in the form that it should have")


class WriteNextThought(dspy.Signature):
    """Go on with the reasoning by one sentence, which states the next fact that the answer of the question needs.
    When all facts are there, that sentence is: So the answer is …
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    passages: list[str] = dspy.InputField()
    thoughts: list[str] = dspy.InputField(desc="the reasoning so far")
    thought: str = dspy.OutputField(desc="one sentence")


class WriteSearchQuery(dspy.Signature):
    """Write the search query for a fact that the answer of the question needs and the passages lack."""

    question: str = question_field()
    passages: list[str] = dspy.InputField(desc="what was found before; may be empty")
    thoughts: str = dspy.OutputField(desc="what the passages tell, and what is missing")
    query: str = dspy.OutputField(desc="complete in itself")


class AnswerWithFindings(dspy.Signature):
    """Answer the question step by step from the passages, from the findings of earlier searches, and from what you know
    where both are silent. Where the question can be read in several ways, read it as the passages do.
    Right after the words that a passage says, write its number as a mark: [2], or [1][3] for two passages. What the
    findings tell, and what you know or conclude yourself, has no mark.
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    findings: str = dspy.InputField(desc="what earlier searches told, and what was missing then; may be empty")
    passages: list[str] = passages_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
