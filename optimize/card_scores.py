"""The scores on the card of a compiled program: what its file says, and whether a card says something else."""

from __future__ import annotations

from typing import Any


def score_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Return a row for each score of an artifact, with its interval and the number of questions."""
    scores, metric = facts.get("scores") or {}, (facts.get("metrics") or ["score"])[0]
    names = {"before": f"{metric} before", "after": metric, "gain": "gain, paired", "grounded": f"{metric}, grounded"}
    return {
        words: f"{scores[key]['mean']:.3f} [{scores[key]['low']:.3f}, {scores[key]['high']:.3f}], n={scores[key]['n']}"
        for key, words in names.items()
        if key in scores
    }


def contradiction(card: str, facts: dict[str, Any]) -> str | None:
    """Return what a card says of a score that its artifact does not, in one line; None if there is no such row."""
    for name, true in score_rows(facts).items():
        told = [row.strip(" |") for row in card.splitlines() if row.startswith(f"| {name} |")]
        if told and f"{name} | {true}" not in told:
            return f"{told[0][:100]!r}; its file says {true}"
    return None
