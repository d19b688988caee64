"""What is kept of a compilation: its artifact and what is tracked; and what the next attempt takes over of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..common.errors import QuestreeError
from ..common.json_files import validate
from ..evaluation.record_scores import keeps_scores
from ..evaluation.run_file import WritableFile
from ..evaluation.tracking import TrackedRun
from ..lm.spent import Spent
from .artifact import MANIFEST, code_name, load, read_artifact, save
from .candidates import read_candidates
from .mlflow_model import log_model
from .plan import Plan
from .result import Compilation, Compiled


class _StoredCompilation(BaseModel):
    """What an artifact stores about its compilation."""

    spent: Spent
    paid: Spent
    seconds: float
    judged: dict[str, int]


class KeptCompilation:
    """The artifact of a compilation, where one is kept or tracked; its candidates are in the file beside it.

    Raises:
        QuestreeError: the program cannot be saved.
    """

    def __init__(self, plan: Plan, file: WritableFile, run: TrackedRun):
        self.plan, self.file, self.run = plan, file, run
        self.folder, self.saves = file.path.with_name("program"), plan.out is not None or run.on
        if self.saves:  # refuses at once what cannot be saved, and lets this process load it
            code_name(plan.program)

    def finished(self) -> Compilation | None:
        """Return what an interrupted run of the same plan had finished compiling, or None."""
        if not (self.folder / MANIFEST).exists() or not keeps_scores(self.plan.metric):
            return None
        parts: dict[str, Any] = {
            name: getattr(self.plan.program, name, None) for name in ("retriever", "reader", "duplicates")
        }
        artifact = read_artifact(self.folder)
        try:
            done = validate(_StoredCompilation, artifact.manifest.facts().get("compilation"))
        except ValueError as error:
            raise QuestreeError(f"{self.folder} does not say how it was compiled ({error}); compile anew.") from error
        candidates = read_candidates(self.file)
        return Compilation(load(artifact, **parts), candidates, done.spent, done.paid, done.seconds, done.judged)

    def save(self, compilation: Compilation, **scores: Any) -> None:
        """Save the program, with what is known of how it was made."""
        if self.saves:
            save(compilation.program, self.folder, **scores, **self.describe(compilation))

    def keep(self, compiled: Compiled) -> Compiled:
        """Save the program with its scores, and track it; return it with its folder and its address."""
        scores = {"before": compiled.before.score, "after": compiled.after.score, "gain": compiled.gain}
        scores |= {"grounded": compiled.after.grounded}
        self.save(compiled.compilation, scores={name: asdict(one) for name, one in scores.items()})
        address = _track(self.run, compiled, self.folder, self.plan.register) if self.run.on else None
        return replace(compiled, artifact=self.folder if self.plan.out else None, address=address)

    def describe(self, compilation: Compilation) -> dict[str, Any]:
        """Return what the artifact stores about its compilation."""
        facts = self.plan.facts()
        told = ("task", "metrics", "optimizer", "teacher", "prompt lm", "seed", "questions")
        return {
            **{key: facts[key] for key in told},
            "compilation": {
                "spent": compilation.spent.model_dump(),
                "paid": compilation.paid.model_dump(),
                "seconds": round(compilation.seconds, 3),
                "judged": dict(compilation.judged),
                "candidates": len(compilation.candidates),
            },
        }


def _track(run: TrackedRun, compiled: Compiled, folder: Path, register: str | None) -> str | None:
    """Log gain and cost, prompts, artifact and the model to serve; return the artifact's address."""
    gain, compilation = compiled.gain, compiled.compilation
    figures = {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
    figures |= {f"compile_{name}": float(value) for name, value in compilation.spent.model_dump().items()}
    figures["score"] = compiled.after.score.mean
    figures |= {f"compile_judged_{name}": float(count) for name, count in compilation.judged.items()}
    run.figures(figures | {"compile_seconds": compilation.seconds, "candidates": len(compilation.candidates)})
    run.prompts(compiled.program)
    run.write(log_model, folder, "model", register)
    return run.folder(folder, "program")
