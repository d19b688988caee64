"""The card of a compiled program on the Hugging Face hub, made from its artifact; both are put there in one commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..common.errors import QuestreeError
from ..programs import build
from .artifact import MANIFEST, Manifest, read_artifact
from .hub import parse, upload

_CAPSULE = "study.capsule"
_CARD = """---
{head}
---

# {title}

A program of Questree: it answers questions that need several facts, and cites the passage behind each.

```python
import dspy, questree

dspy.configure(lm=dspy.LM("openai/gpt-4.1-mini"))
program = questree.load("hf://{repository}", retriever="PATH OF AN INDEX")  # hf://{repository}@COMMIT stays as it is
print(program(question="…").answer)
```

| | |
|---|---|
{table}

It is one file of JSON: loading it runs no code. Its instructions are orders to your LM: read them with
`questree prompts`.
"""


def _words(*words: object, **settings: object) -> str:
    """Return words and settings on one line."""
    return " ".join(" ".join([*map(str, words), *(f"{name}={value}" for name, value in settings.items())]).split())


def _code(*words: object, **settings: object) -> str:
    """Return them as code in a cell of a table, where no sign of theirs has a meaning."""
    return "`" + _words(*words, **settings).replace("`", "'").replace("|", "/") + "`"


def push(
    folder: str | Path,
    address: str,
    *,
    index: str | Path | None = None,
    capsule: str | Path | None = None,
    license: str | None = None,
    private: bool = False,
) -> str:
    """Put a compiled program on the hub with a card made from it, in one commit; return its address with that commit.

    Args:
        address: ``hf://user/name``; the repository is made if there is none.
        index: the folder of the index that it was compiled over; the card tells how to make it again.
        capsule: of runs with the program, from `questree pack`; anybody can replay it.
        license: of its demonstrations, as the hub names licences, such as ``cc-by-4.0``.
    """
    from huggingface_hub import ModelCardData

    repository, _ = parse(address)
    if capsule is not None and not Path(capsule).is_file():
        raise QuestreeError(f"There is no file {capsule}; questree pack makes one.")
    manifest = read_artifact(folder).manifest
    said, kind = manifest.facts(), manifest.program.name
    task, metrics = said.get("task"), said.get("metrics") or ["score"]
    head = ModelCardData(
        library_name="questree",
        pipeline_tag="question-answering",
        tags=["questree", "dspy", kind],
        license=license,
        metrics=metrics,
    )
    rows = {
        **described(manifest, _code),
        **({} if index is None else {"index": _recipe(index, manifest)}),
        "demonstrations": f"from the task's training questions, whose licence they keep: {license or 'not said'}",
        **({"capsule": f"`{_CAPSULE}`: `questree replay {_CAPSULE}` asks it again, offline"} if capsule else {}),
    }
    table = "\n".join(f"| {name} | {text} |" for name, text in rows.items())
    title = f"{kind}, compiled{f' for {task}' if task else ''}"
    card = _CARD.format(head=head.to_yaml(), title=title, repository=repository, table=table)
    files: dict[str, Path | bytes] = {MANIFEST: Path(folder) / MANIFEST, "README.md": card.encode()}
    files |= {_CAPSULE: Path(capsule)} if capsule is not None else {}
    return upload(address, files, f"{kind}, {manifest.checksum[:12]}", private=private)


def described(manifest: Manifest, code: Callable[..., str] = _words) -> dict[str, str]:
    """Return what a program was compiled from and with, and how it scored, by what it is; ``code`` writes names."""
    said = manifest.facts()
    task, optimizer = said.get("task"), said.get("optimizer") or {"name": "none"}
    simulated = " (**simulated**: its numbers say nothing)" if manifest.lm.get("simulated") else ""
    return {
        "program": code(manifest.program.name, **manifest.program.settings),
        "task": code(task) if task else "not said",
        "optimizer": code(optimizer.get("name"), **{name: one for name, one in optimizer.items() if name != "name"}),
        **_score_rows(said),
        "LM": code(manifest.lm.get("name")) + simulated,
        "retriever": " ".join(map(code, manifest.retriever.values())) or "none",
        "made with": ", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
    }


def rewritten(manifest: Manifest) -> dict[str, str]:
    """Return the instructions that are not the code's, by predictor; of several members, by the number of each too.

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


def _recipe(index: str | Path, manifest: Manifest) -> str:
    """Return how an index was made, which a retriever of several parts may stand over."""
    from ..retrieval.indexes.contents import read_manifest

    held, over = read_manifest(Path(index)), manifest.retriever
    if over.get("name") == held.kind and over["fingerprint"] != held.fingerprint:
        raise QuestreeError(f"The program was compiled over {over['fingerprint']}; {index} is {held.fingerprint}.")
    corpus, settings = held.corpus, {name: value for name, value in held.settings.items() if value is not None}
    checkpoint = f", checkpoint {_code(held.checkpoint.name, held.checkpoint.fingerprint)}" if held.checkpoint else ""
    return (
        f"{_code(held.kind, held.fingerprint, **settings)} over {_code(corpus.name)}, {corpus.passages:,} passages, "
        f"SHA-256 {_code(corpus.sha256)}{checkpoint}"
    )
