"""Where a training stands, on disk: weights, optimizer, schedule, random state, step, and what was seen so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...common.errors import QuestreeError
from ...common.files import replacing

NAME = "state.pt"


@dataclass
class TrainingState:
    """What changes from step to step. ``save`` and ``restore`` keep all of it.

    Attributes:
        model: a ``SpanModel``.
        optimizer: of torch.
        schedule: of torch.
        scaler: torch's gradient scaler; does nothing but in float16.
        step: steps that are done.
        best: the worth of the best weights so far on the dev questions; None before the first look.
        finished: whether the last step is done.
        losses: of the steps since the last look at the dev questions.
        history: one entry a look: step, mean of those losses, scores.
    """

    model: Any
    optimizer: Any
    schedule: Any
    scaler: Any
    step: int = 0
    best: float | None = None
    finished: bool = False
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write it; the file is there whole or not at all.

        Raises:
            QuestreeError: it cannot be written.
        """
        import torch

        content = {
            "module": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "step": self.step,
            "best": self.best,
            "finished": self.finished,
            "losses": self.losses,
            "history": self.history,
        }
        try:
            with replacing(folder / NAME) as unfinished:
                torch.save(content, unfinished)
        except (OSError, RuntimeError) as problem:  # torch raises the latter where the disk is full
            raise QuestreeError(
                f"The training cannot be kept in {folder}: {problem}. Make room and run again."
            ) from None

    def restore(self, folder: Path) -> bool:
        """Go on from what is on disk; False where there is nothing. Only tensors and plain values are loaded.

        Raises:
            QuestreeError: it is damaged.
        """
        import torch

        if not (folder / NAME).is_file():
            return False
        try:
            content = torch.load(folder / NAME, map_location="cpu", weights_only=True)
            self.model.module.load_state_dict(content["module"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.schedule.load_state_dict(content["schedule"])
            self.scaler.load_state_dict(content["scaler"])
            torch.set_rng_state(content["random"])
            if torch.cuda.is_available() and content["random_cuda"]:
                torch.cuda.set_rng_state_all(content["random_cuda"])
            self.step, self.best = content["step"], content["best"]
            self.finished, self.losses, self.history = content["finished"], content["losses"], content["history"]
        except Exception as problem:  # whatever torch makes of a damaged file
            raise QuestreeError(
                f"{folder / NAME} is damaged ({type(problem).__name__}); delete {folder} to begin anew."
            ) from problem
        return True
