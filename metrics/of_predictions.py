"""The measures of passages and citations, taken from a question's example and its prediction."""

from __future__ import annotations

from typing import Any

from .citations import marking_accuracy, supported_knowledge_count
from .found_passages import precision, recall_at_k, s_precision


def passage_scores(example: Any, prediction: Any, k: int = 5) -> dict[str, float | None]:
    """Recall of gold titles (in the first k passages, and in all), precision and S-precision of what was found.

    Each is None where the gold passages are unknown. A failed prediction is scored by what it found until then.

    Raises:
        ValueError: if k is below 1.
    """
    titles = [passage.title for passage in prediction.passages]
    gold = example.gold_titles
    return {
        f"recall@{k}": recall_at_k(titles, gold, k),
        "recall": recall_at_k(titles, gold, max(1, len(titles))),
        "precision": precision(titles, gold),
        "s-precision": s_precision(titles, gold),
    }


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
