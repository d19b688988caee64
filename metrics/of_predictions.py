"""The measures of citations, taken from a prediction."""

from __future__ import annotations

from typing import Any

from .citations import marking_accuracy, supported_knowledge_count


def citation_scores(prediction: Any) -> dict[str, float | None]:
    """SKC and AMP of a prediction; AMP is None where nothing is marked, and both are where it failed.

    The answers that a reference is cited for are those of the tree's nodes whose passage it is.
    """
    if getattr(prediction, "failure", None) is not None:
        return {"skc": None, "amp": None}
    references, content = prediction.references, prediction.final_content
    answers = [
        [node.answer for node in prediction.tree.nodes if node.answer and node.passage and node.passage.id == cited.id]
        for cited in references
    ]
    return {
        "skc": supported_knowledge_count(content, len(references)),
        "amp": marking_accuracy(content, [f"{cited.title} {cited.text}" for cited in references], answers),
    }
