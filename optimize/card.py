"""Facts about a compiled program for people: what it was compiled from, how it scored, and what compiling rewrote."""

from __future__ import annotations

from typing import Any

from ..programs import build
from .artifact import Manifest, in_words


def _words(*words: object, **settings: object) -> str:
    """Return words and settings on one line."""
    return " ".join(" ".join([*map(str, words), *(f"{name}={value}" for name, value in settings.items())]).split())


def card_rows(manifest: Manifest) -> dict[str, str]:
    """Return what a program was compiled from and with, and its scores, each under its name."""
    said = manifest.facts()
    task, optimizer = said.get("task"), said.get("optimizer") or {"name": "none"}
    simulated = " (simulated: its numbers say nothing)" if manifest.lm.get("simulated") else ""
    return {
        "program": _words(manifest.program.name, **manifest.program.settings),
        "task": str(task or "not said"),
        "optimizer": _words(optimizer.get("name"), **{name: one for name, one in optimizer.items() if name != "name"}),
        **_score_rows(said),
        "LM": f"{manifest.lm.get('name')}{simulated}",
        "retriever": in_words(manifest.retriever),
        "made with": ", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
    }


def rewritten(manifest: Manifest) -> dict[str, str]:
    """Return the instructions that differ from the code's, by predictor; of several members, also by member's number.

    Raises:
        QuestreeError: if the program's code is not here.
    """
    coded = dict(build(manifest.program.name, manifest.program.settings).named_predictors())
    return {
        f"member {number}, {name}" if len(manifest.state.members) > 1 else name: saved.signature.instructions
        for number, member in enumerate(manifest.state.members, start=1)
        for name, saved in member.items()
        if name in coded and saved.signature.instructions != coded[name].signature.instructions
    }


def _score_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Return a row for each score of an artifact, with its interval and the number of questions."""
    scores, metric = facts.get("scores") or {}, (facts.get("metrics") or ["score"])[0]
    names = {"before": f"{metric} before", "after": metric, "gain": "gain, paired", "grounded": f"{metric}, grounded"}
    return {
        words: f"{scores[key]['mean']:.3f} [{scores[key]['low']:.3f}, {scores[key]['high']:.3f}], n={scores[key]['n']}"
        for key, words in names.items()
        if key in scores
    }
