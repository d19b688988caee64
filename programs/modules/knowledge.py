"""BlendFilter's steps: query blending and knowledge filtering (section 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import dspy

from ...common.sentences import sentences, without_item_mark
from ...common.text import text_or_none
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import stand_among, stands_in, without_marks
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.knowledge import (
    AnswerWithKnowledge,
    DraftAnswer,
    JudgePassages,
    RecallPassage,
)
from ..basis import is_closed
from ..demonstrations import Judgement, note
from ..evidence import Evidence
from ..references import numbered
from . import StepModule
from .answers import CitedAnswer
from .reviews import NOTHING_MISSING, supported_answer, told_by

_UNTOLD = re.compile(  # in "I do not know when, but …", "No passage says when; …" and "…, but it is not told when"
    r"(?:^|[,;] )(?:(?:but|however|and|though|although),? )?"
    r"(?:I (?:do not|don't|cannot|can't|could not|am not|have no)\b"
    r"|(?:no|none of the|neither of the|neither) (?:given |retrieved )?passages?\b"
    r"|(?:the|these) (?:given |retrieved )?passages? (?:do not|don't|does not|doesn't)\b"
    r"|it is (?:not |un)(?:known|clear|said|told|stated|mentioned)\b).*?(?:[,;:] but |; |$)",
    re.IGNORECASE | re.DOTALL,
)
_GUESS = re.compile(r"\b(?:guess\w*|perhaps|maybe|may be|might|probabl[ey]|possibl[ey]|likely)\b", re.IGNORECASE)
_CONCLUSION = re.compile(r"(?:(?:so|thus|therefore|hence),? )?the (?:final )?answer is\b", re.IGNORECASE)


class QueryBlending(StepModule):
    """Extends a question to a query that finds more (section 3.2).

    Args:
        question_first: whether the question stands first in the query. The end of a long query may not be read by the
            encoder of a retriever; the paper has the question last.
        drafts: whether one call writes what the passages say and what the LM recalls; the paper has a call for each.
    """

    def __init__(self, question_first: bool = True, drafts: bool = False) -> None:
        super().__init__()
        self.question_first = question_first
        if drafts:
            self.draft = dspy.Predict(DraftAnswer)
        else:
            self.answer = dspy.Predict(AnswerWithKnowledge)
            self.recall = dspy.Predict(RecallPassage)

    def drafted(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage]
    ) -> tuple[CitedAnswer | None, list[str], str]:
        """Return the answer, if the passages name it and tell all its facts, and queries for missing facts.

        Both queries hold the facts that the passages tell. The external one adds questions for the missing facts; each
        of these questions follows as its own query. The internal one adds what the LM recalls of the missing facts;
        if it recalls nothing, it equals the external one. None holds guesses.
        """
        reply = call(self.draft, question=question, answer_style=answer_style, passages=numbered(passages))
        answer = supported_answer(reply.supported_answer, answer_style)
        piece = Evidence(analysis=reply.facts, answer=answer or "", passages=tuple(shown_of(passages, reply)))
        missing, recalled = ("" if NOTHING_MISSING.fullmatch(one) else one for one in (reply.missing, reply.recalled))
        told = told_by(piece, question) if answer and not missing and answer_style != "long" else None
        if told and not (is_closed(told.answer) or stand_among([one.shown() for one in told.references], told.answer)):
            told = None
        note(reply, "enough" if answer else "not enough", exemplary=bool(told) == bool(answer))
        facts = content_of(without_marks(reply.facts), answer or "", guesses=False)
        each = [without_item_mark(one) for one in sentences(text_or_none(missing) or "")]
        external = [self.blend(question, " ".join([facts, *each])), *each]
        known = content_of(recalled, guesses=False)
        return told, external, self.blend(question, f"{facts} {known}") if known else external[0]

    def external(self, question: str, answer_style: AnswerStyle, passages: list[Passage]) -> str:
        """Return the question with the reasoning and answer that the passages lead to."""
        reply = call(self.answer, question=question, answer_style=answer_style, passages=numbered(passages))
        return self.blend(question, content_of(without_marks(reply.final_content), reply.answer))

    def internal(self, question: str) -> str:
        """Return the question with what the LM remembers."""
        return self.blend(question, content_of(call(self.recall, question=question).passage))

    def blend(self, question: str, knowledge: str) -> str:
        """Return the query."""
        parts = [question, knowledge] if self.question_first else [knowledge, question]
        return " ".join(part.strip() for part in parts if part.strip())


def content_of(draft: str | None, answer: str = "", guesses: bool = True) -> str:
    """Return a draft as a search text: its facts, its guesses if wanted, and the answer if neither has it.

    Sentences that say what is not known, or that begin with "the answer is", are left out: they would find passages
    about not knowing.
    """
    told = (text_or_none(_UNTOLD.sub("", sentence.replace("’", "'"))) for sentence in sentences(draft or ""))
    facts = (fact for fact in told if fact and not _CONCLUSION.match(fact))
    content = " ".join(fact for fact in facts if guesses or not _GUESS.search(fact))
    said = text_or_none(answer) or ""
    return content if stands_in(content, said) else f"{content} {said}".strip()


@dataclass(frozen=True)
class Filtered:
    """What passed the filter.

    Attributes:
        kept: passages, in the order in which they were given.
        misnumbered: how many numbers of the reply were out of range or repeated; they are ignored.
    """

    kept: list[Passage]
    misnumbered: int = 0


class KnowledgeFilter(StepModule):
    """Keeps the passages that help to answer a question (section 3.3).

    Args:
        signature: has the LM judge each passage, or name the numbers of those that help; it may have the LM ignore its
            knowledge of a topic.
    """

    def __init__(self, signature: type[dspy.Signature] = JudgePassages) -> None:
        super().__init__()
        self.filter = dspy.Predict(signature)

    def forward(self, question: str, passages: list[Passage], topic: str | None = None) -> Filtered:
        """Return the passages that are kept; count the numbers, from 1, that no passage has, or that are repeated.

        The decision on each passage that the prompt showed is noted on the reply.
        """
        if not passages:
            return Filtered([])
        more: dict[str, Any] = {} if topic is None else {"topic": topic}
        reply = call(self.filter, question=question, passages=numbered(passages), **more)
        numbers = reply.kept if "kept" in reply else [one.number for one in reply.judgements if one.useful]
        shown = shown_of(passages, reply)
        kept = {number for number in numbers if 1 <= number <= len(shown)}
        kind = "all" if len(kept) == len(shown) else "some" if kept else "none"
        note(reply, kind, [Judgement([passage], number in kept) for number, passage in enumerate(shown, start=1)])
        return Filtered([passages[number - 1] for number in sorted(kept)], misnumbered=len(numbers) - len(kept))
