"""The loop that trains a reader, on one GPU or the CPU, and what it keeps on disk.

The Trainer of transformers needs one more library, and it pickles the random state in its checkpoints.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from ...common.errors import QuestreeError
from ...common.files import replacing
from ...evaluation.tracking import TrackedRun
from ...retrieval import DPRReader
from ...retrieval.calibrated import ReaderManifest, store
from ...retrieval.checkpoints import EMBEDDED
from ...retrieval.late_interaction.checkpoint import find_checkpoint
from ...retrieval.span_model import SpanModel, window_of
from .batches import batch_of, epoch_of, reader_loss
from .examples import ReadingExample
from .readings import Pair, read_all
from .thresholds import ReaderScores, best_theta, score_readings
from .training_settings import TrainingSettings

_TRACKED_EVERY = 10  # steps: to store a number takes longer than a step of a small model
_SHOWN = 20  # steps whose mean loss is shown


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is.

    Attributes:
        step: steps that are done, of ``steps``.
        scores: on the dev questions, if they were read after this step.
    """

    step: int
    steps: int
    loss: float
    questions_per_second: float
    scores: ReaderScores | None = None


class TrainingLoop:
    """A model in training. The constructor loads the encoder, and writes nothing.

    Every step draws its order, negatives and dropout from the seed and its own number, so that a resumed training
    goes on as if it had not been interrupted.

    Attributes:
        step: steps that are done, of ``steps``.
        history: for each time that the dev questions were read: step, mean loss since the last time, scores.
    """

    def __init__(
        self,
        examples: Sequence[ReadingExample],
        dev: Sequence[Pair],
        out: Path,
        encoder: str,
        settings: TrainingSettings,
        facts: dict[str, Any],
        tracked: TrackedRun,
    ):
        self.examples, self.dev, self.out, self.settings, self.tracked = examples, dev, out, settings, tracked
        self.facts = {"encoder": encoder, "questions": len(examples), **settings.model_dump(), **facts}
        self.file = out / "training" / "state.pt"
        self.epoch_steps = -(-len(examples) // settings.batch_size)
        whole = self.epoch_steps * settings.epochs
        self.step, self.steps = 0, min(whole, settings.max_steps or whole)
        self.best, self.losses = float("-inf"), list[float]()  # the best scores; losses since they were last read
        self.history: list[dict[str, float]] = []
        self.batches: list[list[int]] = []  # of this epoch
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            name = find_checkpoint(None).folder if encoder == EMBEDDED else encoder
            self.model, self.tokenizer = SpanModel.on_encoder(name)
        self.window = window_of(self.model.config, settings.window)
        weights = [*self.model.parameters()]
        groups = [
            {"params": [one for one in weights if one.dim() > 1], "weight_decay": 0.01},
            {"params": [one for one in weights if one.dim() <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups)

    def resume(self, minutes: float | None, on_progress: Callable[[TrainingProgress], None]) -> None:
        """Train from where the folder's training stands to the end, or until the time is up."""
        self._restore()
        until = time.monotonic() + 60 * minutes if minutes else float("inf")
        began, first = time.monotonic(), self.step
        with torch.random.fork_rng():
            while self.step < self.steps and (time.monotonic() < until or self.step == first):
                self.losses.append(self._take_step())
                self.step += 1
                loss, ended = fmean(self.losses[-_SHOWN:]), self.step == self.steps or self.step % self.epoch_steps == 0
                scores = self._read_dev() if ended else None
                if ended or self.step % self.settings.checkpoint_every == 0:
                    self._save()
                pace = (self.step - first) / (time.monotonic() - began)
                on_progress(TrainingProgress(self.step, self.steps, loss, pace * self.settings.batch_size, scores))
                if self.step % _TRACKED_EVERY == 0:
                    self.tracked.figures({"loss": loss, "learning_rate": self._rate()}, step=self.step)
            if self.step > first and self.step < self.steps:
                if not self.history:  # the time is up, and there is no reader yet
                    self._read_dev()
                self._save()

    def _rate(self) -> float:
        """Return the learning rate of the next step."""
        warm = max(1, self.steps // 10)
        share = min((self.step + 1) / warm, max(0.0, (self.steps - self.step) / max(1, self.steps - warm)))
        return self.settings.learning_rate * share

    def _take_step(self) -> float:
        """Change the weights by one batch; return its loss."""
        settings, model = self.settings, self.model
        epoch, place = divmod(self.step, self.epoch_steps)
        if place == 0 or not self.batches:
            self.batches = epoch_of(self.examples, settings.batch_size, seed=settings.seed, epoch=epoch)
        torch.manual_seed(random.Random(f"{settings.seed}:{self.step}").getrandbits(32))
        batch = batch_of(
            self.examples,
            self.batches[place],
            self.tokenizer,
            negatives=settings.negatives,
            window=self.window,
            longest_answer=settings.longest_answer,
            rng=random.Random(f"{settings.seed}:{self.step}"),
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate()
        model.train()
        halved = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=halved):
            logits = model(**batch.given.tokens.to(model.device))
        loss = reader_loss(logits, batch, absolute=settings.absolute)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.optimizer.step()
        model.eval()
        return float(loss.detach())

    def _read_dev(self) -> ReaderScores:
        """Read the dev pairs and return their scores; the best weights so far become the folder's reader."""
        longest = self.settings.longest_answer
        reader = DPRReader("in training", 0.0, self.model, self.tokenizer, window=self.window, longest_answer=longest)
        readings, _ = read_all(reader, self.dev)
        scores = score_readings(readings, best_theta(readings).theta)
        figures = {"mean_loss": fmean(self.losses), **scores.figures("dev_")}
        self.history.append({"step": self.step, **figures})
        self.losses.clear()
        self.tracked.figures(figures, step=self.step)
        if scores.worth > self.best:
            self.best = scores.worth
            self.model.save(self.out, self.tokenizer)
            calibration = {"on": "the dev questions of its training", **scores.figures()}
            training = {**self.facts, "step": self.step, "of_steps": self.steps}
            manifest = ReaderManifest(
                kind="spans",
                threshold=scores.theta,
                window=self.window,
                longest_answer=longest,
                calibration=calibration,
                training=training,
            )
            store(self.out, manifest)
        return scores

    def _save(self) -> None:
        """Write what changes from step to step to a file, which is there whole or not at all."""
        content = {
            "module": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            **{name: getattr(self, name) for name in ("step", "best", "losses", "history")},
        }
        try:
            with replacing(self.file) as unfinished:
                torch.save(content, unfinished)
        except (OSError, RuntimeError) as problem:  # torch raises the latter if the disk is full
            raise QuestreeError(f"{self.file} cannot be written: {problem}. Make room and run again.") from None

    def _restore(self) -> None:
        """Take over the state that is in the folder, if there is one. Nothing of it is unpickled."""
        if not self.file.is_file():
            return
        try:
            content = torch.load(self.file, map_location="cpu", weights_only=True)
            self.model.load_state_dict(content["module"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.step, self.best = content["step"], content["best"]
            self.losses, self.history = content["losses"], content["history"]
        except Exception as problem:  # torch raises errors of many kinds for a damaged file
            raise QuestreeError(
                f"{self.file} is damaged ({type(problem).__name__}); delete {self.file.parent} to begin anew."
            ) from problem
        self.tracked.params({"resumed_from_step": self.step})
