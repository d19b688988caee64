"""One training in one process: a plain loop, on one GPU or the CPU.

The Trainer of transformers needs one more library, and it pickles the random state in its checkpoints.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from ...evaluation.tracking import TrackedRun
from ...retrieval import DPRReader
from ...retrieval.calibrated import ReaderManifest, store
from ...retrieval.encoders import EMBEDDED
from ...retrieval.late_interaction.checkpoint import find_checkpoint
from ...retrieval.span_model import SpanModel, window_of
from .batches import Batch, batch_of, epoch_of, reader_loss
from .examples import ReadingExample
from .readings import Pair, read_all
from .thresholds import ReaderScores, best_theta, score_readings
from .training_state import TrainingProgress, TrainingSettings, TrainingState

_TRACKED_EVERY = 10  # steps: to store a number takes longer than a step of a small model
_SMOOTHED = 0.05  # share of the newest loss in the one that is shown


class TrainingRun:
    """The model, and everything that trains it. The constructor loads the model and does nothing else."""

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
        self.epoch_steps = -(-len(examples) // settings.batch_size)
        whole = self.epoch_steps * settings.epochs
        self.steps = min(whole, settings.max_steps or whole)
        self.state, self.tokenizer = self._load(encoder)
        self.window = window_of(self.state.model.config, settings.window)

    def resume(self, minutes: float | None, on_progress: Callable[[TrainingProgress], None]) -> None:
        """Train from where the folder's training stands to the end, or until the time is up."""
        import torch

        until = time.monotonic() + 60 * minutes if minutes else float("inf")
        with torch.random.fork_rng():
            torch.manual_seed(self.settings.seed)
            resumed = self.state.restore(self.out / "training")
            if resumed:
                self.tracked.params({"resumed_from_step": self.state.step})
            if not self.state.finished:
                self._take_steps(until, on_progress)

    def _load(self, encoder: str) -> tuple[TrainingState, Any]:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(self.settings.seed)
            name = find_checkpoint(None).folder if encoder == EMBEDDED else encoder
            model, tokenizer = SpanModel.on_encoder(name)
        decayed = [one for one in model.module.parameters() if one.dim() > 1]
        others = [one for one in model.module.parameters() if one.dim() <= 1]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.settings.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._share_of_rate)
        scaler = torch.amp.GradScaler(enabled=_precision() == "float16")
        return TrainingState(model, optimizer, schedule, scaler), tokenizer

    def _share_of_rate(self, step: int) -> float:
        """Return the share of the learning rate that holds at this step."""
        warm = max(1, self.steps // 10)
        return min((step + 1) / warm, max(0.0, (self.steps - step) / max(1, self.steps - warm)))

    def _take_steps(self, until: float, on_progress: Callable[[TrainingProgress], None]) -> None:
        state, began, first = self.state, time.monotonic(), self.state.step
        loss = float("nan")
        for positions in self._batches(first):
            newest = self._step(positions)
            state.losses.append(newest)
            loss = newest if loss != loss else (1 - _SMOOTHED) * loss + _SMOOTHED * newest
            state.step += 1
            scores = None
            if state.step % self.epoch_steps == 0 or state.step == self.steps:
                scores = self._read_dev()
            if scores or state.step % self.settings.checkpoint_every == 0:
                state.save(self.out / "training")
            taken = time.monotonic() - began
            done = state.step - first
            questions = done * self.settings.batch_size
            left = (self.steps - state.step) * taken / done
            on_progress(TrainingProgress(state.step, self.steps, loss, questions / taken, left, scores))
            if state.step % _TRACKED_EVERY == 0:
                figures = {"loss": loss, "learning_rate": state.schedule.get_last_lr()[0]}
                self.tracked.figures(figures, step=state.step)
            if time.monotonic() > until and state.step < self.steps:
                if state.best is None:
                    self._read_dev()
                state.save(self.out / "training")
                return

    def _batches(self, first: int) -> Iterator[list[int]]:
        """Yield the batch of each step from the first on."""
        for step in range(first, self.steps):
            epoch, place = divmod(step, self.epoch_steps)
            if place == 0 or step == first:
                batches = epoch_of(self.examples, self.settings.batch_size, seed=self.settings.seed, epoch=epoch)
            yield batches[place]

    def _step(self, positions: list[int]) -> float:
        import torch

        state, settings = self.state, self.settings
        batch = batch_of(
            self.examples,
            positions,
            self.tokenizer,
            negatives=settings.negatives,
            window=self.window,
            longest_answer=settings.longest_answer,
            rng=random.Random(f"{settings.seed}:{state.step}"),
        )
        state.model.module.train()
        loss = self._loss(batch)
        state.optimizer.zero_grad()
        state.scaler.scale(loss).backward()
        state.scaler.unscale_(state.optimizer)
        torch.nn.utils.clip_grad_norm_(state.model.module.parameters(), 1.0)
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.schedule.step()
        state.model.module.eval()
        return float(loss.detach())

    def _loss(self, batch: Batch) -> Any:
        import torch

        model, precision = self.state.model, _precision()
        wanted = {"device_type": model.device.type, "dtype": getattr(torch, precision)}
        with torch.autocast(**wanted, enabled=precision != "float32"):
            logits = model(**batch.given.tokens.to(model.device))
        return reader_loss(logits, batch, absolute=self.settings.absolute)

    def _read_dev(self) -> ReaderScores:
        """Read the dev pairs and return their scores; the best weights so far become the folder's reader."""
        state, settings = self.state, self.settings
        reader = DPRReader(
            "in training", 0.0, state.model, self.tokenizer, window=self.window, longest_answer=settings.longest_answer
        )
        readings, _ = read_all(reader, self.dev)
        scores = score_readings(readings, best_theta(readings).theta)
        figures = {"mean_loss": fmean(state.losses), **scores.figures("dev_")}
        state.history.append({"step": state.step, **figures})
        state.losses.clear()
        state.finished = state.step == self.steps
        self.tracked.figures(figures, step=state.step)
        if state.best is None or scores.worth > state.best:
            state.best = scores.worth
            state.model.save(self.out, self.tokenizer)
            store(self.out, self._manifest(scores))
        return scores

    def _manifest(self, scores: ReaderScores) -> ReaderManifest:
        return ReaderManifest(
            kind="spans",
            threshold=scores.theta,
            window=self.window,
            longest_answer=self.settings.longest_answer,
            calibration={"on": "the dev questions of its training", **scores.figures()},
            training={**self.facts, "step": self.state.step, "of_steps": self.steps},
        )


def _precision() -> str:
    """Return the type to compute in: on a GPU bfloat16 if it can, else float16; on a CPU float32."""
    import torch

    if not torch.cuda.is_available():
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
