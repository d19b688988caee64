"""The verification of a sentence of the reasoning (Zhao et al., ACL 2023, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import dspy

from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import normalise, without_marks
from ...retrieval import Passage
from ...signatures.verification import AskToVerify, EditSentence
from ..demonstrations import note
from ..references import numbered


@dataclass(frozen=True)
class Verified:
    """A sentence after its verification.

    Attributes:
        query: the verifying question.
        sentence: as it was.
        edited: as it is now.
        passage: the one that supports it, if any.
        found: all passages that were retrieved.
    """

    query: str
    sentence: str
    edited: str
    passage: Passage | None
    found: list[Passage]


class Verification(dspy.Module):
    """A verifying question about a sentence, and the sentence edited by what was found."""

    def __init__(self) -> None:
        super().__init__()
        self.ask_to_verify = dspy.Predict(AskToVerify)
        self.edit_sentence = dspy.Predict(EditSentence)

    def forward(self, question: str, sentence: str, find: Callable[[str], list[Passage]]) -> Verified:
        """Return the sentence edited by what is found for it: with itself if the LM asks nothing about it.

        Without passages it stays as it was.
        """
        query = query_or_none(call(self.ask_to_verify, question=question, sentence=sentence).query) or sentence
        passages = find(query)
        if not passages:
            return Verified(query, sentence, sentence, None, [])
        reply = call(self.edit_sentence, query=query, sentence=sentence, passages=numbered(passages))
        edited = text_or_none(reply.edited) or sentence
        note(reply, "same" if normalise(edited) == normalise(sentence) else "changed")
        shown = shown_of(passages, reply)
        cited = [shown[n - 1] for n in reply.references if 1 <= n <= len(shown)]
        return Verified(query, sentence, without_marks(edited), cited[0] if cited else None, passages)
