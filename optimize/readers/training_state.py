"""How a reader is trained, how far the training is, and where it stands on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ...common.errors import QuestreeError
from ...common.files import replacing
from .thresholds import ReaderScores

_FILE = "state.pt"


class TrainingSettings(BaseModel):
    """How a reader is trained; the defaults suit a few thousand questions and a small encoder.

    Attributes:
        epochs: times that each question is seen.
        batch_size: questions of a step.
        negatives: passages of a question that do not answer it (DPR: 23).
        learning_rate: at its height; it rises over the first tenth and falls to nothing.
        absolute: see `reader_loss`.
        window: tokens of query, title and text that are read.
        longest_answer: tokens of a span, at most (DPR: 10).
        max_steps: stop there; the learning rate falls to nothing by then.
        checkpoint_every: steps from one checkpoint to the next.
        seed: of the heads, the order, the negatives and dropout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=4, ge=1)
    negatives: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    absolute: float = Field(default=1.0, ge=0)
    window: int = Field(default=256, ge=16)
    longest_answer: int = Field(default=10, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    checkpoint_every: int = Field(default=200, ge=1)
    seed: int = 0


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is.

    Attributes:
        step: steps that are done, of ``steps``.
        loss: smoothed.
        questions_per_second: of this process.
        seconds_left: at that pace; reading the dev questions is included.
        scores: on the dev questions, if they were read after this step.
    """

    step: int
    steps: int
    loss: float
    questions_per_second: float
    seconds_left: float
    scores: ReaderScores | None = None


@dataclass
class TrainingState:
    """Everything that changes from step to step; ``save`` and ``restore`` keep all of it.

    Attributes:
        model: a ``SpanModel``.
        optimizer: of torch.
        schedule: of torch; gives the learning rate.
        scaler: torch's gradient scaler; does nothing but in float16.
        step: steps that are done.
        best: the worth of the best weights so far on the dev questions; None before these were first read.
        finished: whether the last step is done.
        losses: of the steps since the dev questions were last read.
        history: for each time that the dev questions were read: step, mean of those losses, scores.
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
        """Write the state to a file in the folder, which is there whole or not at all.

        Raises:
            QuestreeError: if it cannot be written.
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
            with replacing(folder / _FILE) as unfinished:
                torch.save(content, unfinished)
        except (OSError, RuntimeError) as problem:  # torch raises the latter if the disk is full
            raise QuestreeError(
                f"The training cannot be kept in {folder}: {problem}. Make room and run again."
            ) from None

    def restore(self, folder: Path) -> bool:
        """Take over the state that is in the folder, and say whether there is one.

        Only tensors and plain values are loaded; nothing is unpickled.

        Raises:
            QuestreeError: if the file is damaged.
        """
        import torch

        if not (folder / _FILE).is_file():
            return False
        try:
            content = torch.load(folder / _FILE, map_location="cpu", weights_only=True)
            self.model.module.load_state_dict(content["module"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.schedule.load_state_dict(content["schedule"])
            self.scaler.load_state_dict(content["scaler"])
            torch.set_rng_state(content["random"])
            if torch.cuda.is_available() and content["random_cuda"]:
                torch.cuda.set_rng_state_all(content["random_cuda"])
            self.step, self.best = content["step"], content["best"]
            self.finished, self.losses, self.history = content["finished"], content["losses"], content["history"]
        except Exception as problem:  # torch raises errors of many kinds for a damaged file
            raise QuestreeError(
                f"{folder / _FILE} is damaged ({type(problem).__name__}); delete {folder} to begin anew."
            ) from problem
        return True
