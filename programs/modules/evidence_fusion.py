"""Evidence fusion: the final answer from the evidence pool (ToR, section 3.3)."""

from __future__ import annotations

from typing import Any, Literal

import dspy

from ...lm.call import call
from ...lm.window import shown_of
from ...retrieval import Passage
from ...signatures import AnswerStyle, Assertion, FuseAnalyses, FuseEvidence, FuseParagraphs
from ..citations import settle_marks
from ..evidence import Evidence
from .numbering import numbered

Fusion = Literal["analysis", "paragraph", "evidence"]
_SIGNATURES: dict[Fusion, type[dspy.Signature]] = {
    "analysis": FuseAnalyses,
    "paragraph": FuseParagraphs,
    "evidence": FuseEvidence,
}


class EvidenceFusion(dspy.Module):
    """Answers from what the accepted paths assert, from their paragraphs, or from both (tables 10 to 12)."""

    def __init__(self, fusion: Fusion) -> None:
        super().__init__()
        self.fuse = dspy.Predict(_SIGNATURES[fusion])

    def forward(
        self, question: str, answer_style: AnswerStyle, evidence: list[Evidence], passages: list[Passage]
    ) -> tuple[str, str, list[Passage]]:
        """The answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``.

        Args:
            question: in the user's words.
            answer_style: the form of the answer.
            evidence: of the accepted paths.
            passages: those of the evidence and any others that the answer may rest on, each once.
        """
        number = {passage.id: n for n, passage in enumerate(passages, start=1)}
        assertions = [
            Assertion(answer=piece.answer, references=[number[passage.id] for passage in piece.passages])
            for piece in evidence
        ]
        shown: dict[str, Any] = {"assertions": assertions, "passages": numbered(passages)}
        asked_for = {name: value for name, value in shown.items() if name in self.fuse.signature.input_fields}
        reply = call(self.fuse, question=question, answer_style=answer_style, **asked_for)
        final_content, references = settle_marks(reply.final_content, shown_of(passages, reply))
        return reply.answer, final_content, references
