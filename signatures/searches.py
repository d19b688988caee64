"""Reasoning that searches on its way: Toolformer, ReAct, IRCoT, DSP, Search-o1, Search-R1, Adaptive-RAG, FLARE."""

from __future__ import annotations

from typing import Literal

import dspy

from .answers import QuestionInputs, answer_field, passages_field, question_field, sure_field


class WriteOrSearch(QuestionInputs):
    """Go on writing the text that reasons towards the answer of the question. Where you come to a fact that is
    better looked up, stop there and call for a search: its result will be put into the text.
    After each fragment that rests on a result, write its number as a mark: [1].
    """

    written: list[str] = dspy.InputField(desc="the text so far, with the results of its searches")
    continuation: str = dspy.OutputField(desc="what comes next in the text, up to the search")
    search: str | None = dspy.OutputField(desc="what to look up, complete in itself; null at the end of the text")
    answer: str | None = dspy.OutputField(
        desc="the answer alone, in the form that it should have; null when a search is called"
    )


class AnswerByActing(QuestionInputs):
    """Find out the answer of the question by searching an encyclopedia, one fact after the other. In each turn, either
    search or answer.
    """

    passages: list[str] = passages_field("found so far", "may be empty")
    trajectory: list[str] = dspy.InputField(desc="your thoughts, and your searches with what each found")
    searches_left: int = dspy.InputField(desc="at 0, search no more")
    next_thought: str = dspy.OutputField(desc="what is known, and what is missing")
    search: str = dspy.OutputField(desc="one query, complete in itself; empty if you answer")
    final_content: str = dspy.OutputField(
        desc="empty if you search; else the reasoning, one fact to a sentence; after the words that a passage says, "
        "its number as a mark: [1]"
    )
    answer: str = answer_field("empty if you search; else ")
    sure: bool = sure_field()


class WriteNextThought(QuestionInputs):
    """Go on with the reasoning by one sentence, about the next fact that the answer of the question needs.
    If a passage tells it, state it with the number of the passage as a mark: [2]. What a passage tells of another
    thing or place, or of a time that the question does not mean, does not count.
    If none does and you are certain of it, state it without a mark.
    If none does and you are not certain, say what has to be found.
    If none does and an earlier sentence says that it has to be found, state your best guess, with "perhaps". Later
    sentences take the guess as true. If a passage contradicts it, the next sentence states what the passage says.
    When no fact is missing, the sentence is: So the answer is: … If it rests on a guess: So the answer is perhaps: …
    """

    passages: list[str] = passages_field()
    thoughts: list[str] = dspy.InputField(desc="the reasoning so far; may be empty")
    thought: str = dspy.OutputField(desc="one sentence")


class RegenerateSentence(QuestionInputs):
    """Write the next sentence of the reasoning anew: you wrote it from memory, and the passages were searched for it.
    Write the number of a passage as a mark, such as [2], right after the words that the passage says, and after no
    others. What a passage tells of another thing or place, or of a time that the question does not mean, does not
    count. Take an earlier sentence with "perhaps" as true, unless a passage contradicts it: then state what the passage
    says. Take the first of these cases that fits:
    A passage tells the fact, or tells it less exactly, and no earlier sentence says as much: state what it says, with
    its mark; you may add, without a mark, what you are certain of. If several things fit, state the one that is most
    likely meant.
    You are certain by now that the words which you doubted are right and meant, and no others are likely: keep the
    sentence. That no passage tells it is no reason to doubt it.
    A passage tells a part of the fact, which no earlier sentence tells: state that part with its mark, and say what has
    to be found.
    An earlier sentence says that this has to be found, or tells a part of it: keep the guess, with "perhaps".
    Else, say what has to be found.
    """

    passages: list[str] = passages_field()
    thoughts: list[str] = dspy.InputField(desc="the reasoning before the sentence; may be empty")
    tentative: str = dspy.InputField(desc="the sentence as you wrote it from memory; it may be wrong")
    uncertain: list[str] = dspy.InputField(desc="the words of it that you doubted: they may be wrong, or not meant")
    thought: str = dspy.OutputField(desc="the sentence anew")


class WriteSearchQuery(dspy.Signature):
    """Write a search query for a fact that the answer of the question needs, and that neither the findings nor the
    passages tell.
    """

    question: str = question_field()
    findings: str = dspy.InputField(desc="what earlier searches told, and what was missing then; may be empty")
    passages: list[str] = passages_field("found before", "may be empty")
    thoughts: str = dspy.OutputField(desc="what the passages tell, and what is missing")
    query: str = dspy.OutputField(desc="complete in itself")


class AnswerWithFindings(QuestionInputs):
    """Answer the question step by step from the passages, from the findings of earlier searches, and from what you know
    where both are silent. Where the question can be read in several ways, read it as the passages do.
    Right after the words that a passage says, write its number as a mark: [2], or [1][3] for two passages. What the
    findings tell, and what you know or conclude yourself, has no mark. Say so where you guess.
    """

    findings: str = dspy.InputField(desc="what earlier searches told, and what was missing then; may be empty")
    passages: list[str] = passages_field()
    final_content: str = dspy.OutputField(desc="the reasoning, one fact to a sentence, with its marks")
    answer: str = answer_field()
    sure: bool = sure_field()


class ReasonOrSearch(QuestionInputs):
    """Go on reasoning, step by step, towards the answer of the question. Where you are not certain of a fact, do
    not guess: stop there and search for it. What the search tells will then stand in the reasoning, and you will go
    on from there; if it tells nothing useful, search in other words or for something else. When no fact is missing,
    or what is missing cannot be found, give the answer, or your best guess, unless the form forbids one. What a search
    told may have marks, such as [1]: where you repeat it, repeat its mark.
    """

    written: list[str] = dspy.InputField(
        desc="the reasoning so far, with its searches: [Search(query) → what it told]; may be empty"
    )
    continuation: str = dspy.OutputField(desc="what comes next in the reasoning, up to the search")
    search: str | None = dspy.OutputField(desc="one search query, complete in itself; null when the answer is given")
    answer: str | None = dspy.OutputField(
        desc="the answer alone, in the form that it should have; null when a search is made"
    )


class CondensePassages(dspy.Signature):
    """Write down what the passages tell of the query, and of facts in the reasoning that have no mark, as far as it
    helps the reasoning on towards the answer of the question. Leave out everything else, and add nothing that no
    passage tells. After the words that a passage says, write its number as a mark: [2].
    """

    question: str = question_field()
    written: list[str] = dspy.InputField(desc="the reasoning so far, which the query continues")
    query: str = dspy.InputField(desc="what was searched for")
    passages: list[str] = passages_field()
    finding: str = dspy.OutputField(desc="a few sentences with their marks; empty when no passage helps")


class SearchInTags(QuestionInputs):
    """Reason towards the answer of the question, and search wherever you lack knowledge. To search, write
    <search>query</search> and stop there: what is found will stand behind it, between <information> and </information>,
    and you will go on from there. You may search as often as you want. When you lack nothing, write
    <answer>answer</answer>: the answer alone, in the form that it should have. After the words that rest on a passage,
    write its number as a mark: [2].
    """

    written: list[str] = dspy.InputField(desc="what you wrote so far, with what was found; may be empty")
    turn: str = dspy.OutputField(desc="what you write next, up to </search> or </answer>")


class JudgeSearchesNeeded(QuestionInputs):
    """Judge how many searches in an encyclopedia it takes to answer the question: none if you are certain of the
    answer, one if a single search finds all that it needs, several if one fact has to be found before the next can be
    searched for, or if facts about different things are needed. A fact that you are certain of needs no search.
    """

    searches_needed: Literal["none", "one", "several"] = dspy.OutputField(desc="how many")


class WriteTentatively(QuestionInputs):
    """Go on with the reasoning by one sentence, which states the next fact that the answer of the question needs, as
    you remember it. Then copy from it the words that may be wrong. Where a description in the question may fit several
    things, or the question leaves out which thing is meant, copy the name that you chose, also if you are certain that
    it fits. Never copy words that stand in the question or in an earlier sentence. If you copy any words, they are cut
    out, the rest is searched for, and the sentence is written anew from what is found: so the rest has to say which
    thing it is about, and which kind of thing is sought. If you copy none, the sentence stays as it is. If the last
    sentence says that something has to be found, state your best guess of it, in a sentence of another form that still
    names what is sought: if the rest finds nothing new, the guess is searched for too. A sentence with "perhaps" counts
    as known. When no fact is missing, the sentence is: So the answer is: … If it rests on a "perhaps": So the answer is
    perhaps: …
    """

    thoughts: list[str] = dspy.InputField(
        desc="the reasoning so far; a mark such as [3] names the passage that told it; may be empty"
    )
    tentative: str = dspy.OutputField(
        desc="one sentence, complete in itself, without a mark such as [3]; a guess where you do not remember"
    )
    uncertain: list[str] = dspy.OutputField(
        desc="only the words that may be wrong, or not what is meant: a name, a number or a date alone, as it stands "
        "there; empty if you are certain that all of it is true and meant, or if it begins with: So the answer is"
    )
