"""Defences against planted passages that cost no LM call, by name."""

from __future__ import annotations

from ...common.errors import QuestreeError
from ...common.names import unknown_name
from ..contracts import Reader, Retriever
from .agreement import AgreementRetriever
from .relevance import RelevanceRetriever

DEFENCES = {
    "none": "every passage that is found",
    "agreement": "without passages that repeat the question word for word, or one another",
    "reader": "without passages in which a trained reader finds no answer",
}


def defended(retriever: Retriever, defence: str, reader: Reader | None = None) -> Retriever:
    """The retriever with a defence around it.

    Args:
        retriever: finds the passages.
        defence: of `DEFENCES`.
        reader: of the defence by a reader, with the threshold that it was calibrated to.

    Raises:
        QuestreeError: there is no such defence, or it wants a reader that is no LM.
    """
    if defence not in DEFENCES:
        raise QuestreeError(unknown_name("defence", defence, DEFENCES))
    if defence == "agreement":
        return AgreementRetriever(retriever)
    if defence == "reader":
        if reader is None or reader.name == "lm":
            raise QuestreeError(
                "The defence by a reader costs no LM call where a trained one reads: name it (--reader), or train it "
                "(questree train-reader)."
            )
        return RelevanceRetriever(retriever, reader)
    return retriever
