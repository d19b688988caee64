"""BlendFilter's steps: query blending and knowledge filtering (section 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import dspy

from ...common.sentences import sentences
from ...common.text import text_or_none
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import contains
from ...retrieval import Passage
from ..demonstrations import Judgement, note
from ..references import numbered

_UNTOLD = re.compile(  # in "I do not know when, but …", "No passage says when; …" and "…, but it is not told when"
    r"(?:^|[,;] )(?:(?:but|however|and|though|although),? )?"
    r"(?:I (?:do not|don't|cannot|can't|could not|am not|have no)\b"
    r"|(?:no|none of the|neither of the|neither) (?:given |retrieved )?passages?\b"
    r"|(?:the|these) (?:given |retrieved )?passages? (?:do not|don't|does not|doesn't)\b"
    r"|it is (?:not |un)(?:known|clear|said|told|stated|mentioned)\b).*?(?:[,;:] but |; |$)",
    re.IGNORECASE | re.DOTALL,
)
_CONCLUSION = re.compile(r"(?:(?:so|thus|therefore|hence),? )?the (?:final )?answer is\b", re.IGNORECASE)


def content_of(draft: str | None, answer: str = "") -> str:
    """Return the facts and guesses of a draft, to search with, and the answer where they do not hold it.

    What the draft says that it does not know only finds passages about not knowing; so does "the answer is".
    """
    told = (text_or_none(_UNTOLD.sub("", sentence.replace("’", "'"))) for sentence in sentences(draft or ""))
    content = " ".join(fact for fact in told if fact and not _CONCLUSION.match(fact))
    said = text_or_none(answer) or ""
    return content if contains(content, said) else f"{content} {said}".strip()


@dataclass(frozen=True)
class Filtered:
    """What passed the filter.

    Attributes:
        kept: passages, in the order in which they were given.
        misnumbered: how many numbers of the reply were out of range or repeated; they are ignored.
    """

    kept: list[Passage]
    misnumbered: int = 0


def filtered_knowledge(
    predict: dspy.Predict, question: str, passages: list[Passage], topic: str | None = None
) -> Filtered:
    """Return the passages that help to answer a question (section 3.3): the LM judges each, or names their numbers.

    Numbers, from 1, that no passage has, or that are repeated, are counted. What was decided about each passage that
    the prompt showed is noted on the reply.
    """
    if not passages:
        return Filtered([])
    inputs = {"question": question, "passages": numbered(passages)} | ({} if topic is None else {"topic": topic})
    reply = call(predict, **inputs)
    numbers = reply.kept if "kept" in reply else [one.number for one in reply.judgements if one.useful]
    shown = shown_of(passages, reply)
    kept = {number for number in numbers if 1 <= number <= len(shown)}
    kind = "all" if len(kept) == len(shown) else "some" if kept else "none"
    note(reply, kind, [Judgement([passage], number in kept) for number, passage in enumerate(shown, start=1)])
    return Filtered([passages[number - 1] for number in sorted(kept)], misnumbered=len(numbers) - len(kept))
