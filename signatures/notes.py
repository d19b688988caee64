"""Multi-hop search with notes: what to search for next, what to keep of the passages, and the answer from it."""

from __future__ import annotations

import dspy

from .answers import answer_field, answer_style_field, passages_field, question_field


class WriteHopQuery(dspy.Signature):
    """Write the search query for the next fact that the answer of the question needs and the notes lack. A name that
    you guess may stand in the query. Where an earlier query found nothing, ask in other words, or for another fact.
    When no fact is missing, or the missing one was not found in other words either, leave the query empty: no more
    searches are made.
    """

    question: str = question_field()
    notes: list[str] = dspy.InputField(
        desc="facts that earlier searches found, each with the number of its passage; may be empty"
    )
    queries: list[str] = dspy.InputField(desc="the queries that were made before, each with how many notes came of it")
    thoughts: str = dspy.OutputField(desc="what the notes tell, and what is missing")
    query: str = dspy.OutputField(
        desc="asks for one fact, complete in itself and unlike the queries before; empty to end"
    )


class TakeNotes(dspy.Signature):
    """Note the facts in the passages that help to answer the question, or to find out what it describes, and nothing
    that no passage tells. Where its description fits several things, note each. End each note with the number of its
    passage as a mark: [3], or [3][5] for two passages. Passages may come again. A fact that stands in the notes is
    noted again only with the number of another passage that tells it.
    """

    question: str = question_field()
    notes: list[str] = dspy.InputField(desc="facts that were noted before; may be empty")
    query: str = dspy.InputField(desc="what the passages were searched with")
    passages: list[str] = passages_field()
    new_notes: list[str] = dspy.OutputField(
        desc="one fact each, complete in itself, with its mark; empty when no passage helps"
    )


class AnswerFromNotes(dspy.Signature):
    """Answer the question step by step from the notes, and from what you know where they are silent.
    Right after the words that a note says, write its mark, such as [3], as it stands there. What you know or conclude
    yourself has no mark. Leave out notes that the answer does not need. Where two notes contradict each other, say
    which you follow. Say so where you guess.
    """

    question: str = question_field()
    answer_style: str = answer_style_field()
    notes: list[str] = dspy.InputField(desc="facts that were found, each with the number of its passage; may be empty")
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
