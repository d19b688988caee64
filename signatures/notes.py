"""Multi-hop search with notes: what to search for next, what to keep of the passages, and the answer from it."""

from __future__ import annotations

import dspy

from .answers import QuestionInputs, answer_field, passages_field, question_field, sure_field


class WriteHopQuery(dspy.Signature):
    """Write the search query for the next fact that the answer of the question needs and the notes lack. Where the
    notes still lack what an earlier query asked for, or tell only a part of it, ask for it once more, in other words or
    with a name from the notes. If it was asked for twice, guess it, and ask for the next fact with the name that you
    guess; if it is the last fact that the answer needs, leave the query empty. If the notes name several things that
    fit, follow the one that is most likely meant. When no fact is missing, leave the query empty, too: no more searches
    are made.
    """

    question: str = question_field()
    notes: list[str] = dspy.InputField(
        desc="facts that earlier searches found, each with the number of its passage; may be empty"
    )
    queries: list[str] = dspy.InputField(
        desc="the queries that were made before, each with how many notes came of it; the notes may not tell "
        "what was asked for"
    )
    thoughts: str = dspy.OutputField(desc="what the notes tell, and which fact is missing next")
    query: str = dspy.OutputField(
        desc="asks for one fact, with all that the question says of it; complete in itself and unlike the queries "
        "before; empty to end"
    )


class TakeNotes(dspy.Signature):
    """Note the facts in the passages that help to answer the question, or to find out which thing it describes. Note
    only what a passage says; one about another thing of the same name does not help. If several things answer the
    query, note each. End each note with the number of its passage as a mark: [3], or [3][5] where each of two passages
    tells all of it. Some passages were shown before. Write nothing that a note says already, unless a passage whose
    number stands in no note tells it: then note it once with that number.
    """

    question: str = question_field()
    notes: list[str] = dspy.InputField(desc="facts that were noted before; may be empty")
    query: str = dspy.InputField(desc="what the passages were searched with; a name in it may be a guess")
    passages: list[str] = passages_field()
    new_notes: list[str] = dspy.OutputField(
        desc="one fact each, complete in itself, with its mark; empty when no passage helps"
    )


class AnswerFromNotes(QuestionInputs):
    """Answer the question step by step from the notes, and from what you know where they are silent. After each
    statement that a note makes, copy the mark of the note, such as [3]. What you know or conclude yourself has no mark.
    Tell each link of the question, also one that you only conclude. Leave out notes that the answer does not need.
    Where two notes contradict each other, or several things may be meant, say which you follow. A statement without a
    mark that you doubt, and a name that stands only in a query, are guesses: say so.
    """

    notes: list[str] = dspy.InputField(desc="facts that were found, each with the number of its passage; may be empty")
    queries: list[str] = dspy.InputField(desc="what was searched for; a name in a query may be a guess")
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
    sure: bool = sure_field()
