"""One training in one process: an explicit loop, on one GPU or the CPU.

transformers' Trainer would want one more library, and its checkpoints of the random state are pickles.
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
from ...retrieval.late_interaction.checkpoint import EMBEDDED, find_checkpoint
from ...retrieval.readers.span_model import SpanModel
from ...retrieval.readers.spans import window_of
from .batches import Batch, batch_of, epoch_of, reader_loss
from .calibration import Pair, best_theta, read_all
from .evaluation import ReaderScores, score_readings
from .examples import ReadingExample
from .training_plan import TrainingProgress, TrainingSettings
from .training_state import TrainingState

_TRACKED_EVERY = 10  # steps: a store takes longer to write a number than a small model a step
_SMOOTHED = 0.05  # share of the newest loss in the one that is shown


class TrainingRun:
    """The model, and all that it takes to make it better. Loading it is all that the constructor does."""

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
        self.state, self.tokenizer = self._begin(encoder)
        self.window = window_of(self.state.model.config, settings.window)

    def go_on(self, minutes: float | None, on_progress: Callable[[TrainingProgress], None]) -> None:
        """From where it stands to the end, or until the time is up."""
        import torch

        until = time.monotonic() + 60 * minutes if minutes else float("inf")
        with torch.random.fork_rng():
            torch.manual_seed(self.settings.seed)
            resumed = self.state.restore(self.out / "training")
            if resumed:
                self.tracked.params({"resumed_from_step": self.state.step})
            if not self.state.finished:
                self._steps(until, on_progress)

    def _begin(self, encoder: str) -> tuple[TrainingState, Any]:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(self.settings.seed)
            name = find_checkpoint(None).folder if encoder == EMBEDDED else encoder
            model, tokenizer = SpanModel.on_encoder(name)
        decayed = [one for one in model.module.parameters() if one.dim() > 1]
        others = [one for one in model.module.parameters() if one.dim() <= 1]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.settings.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._height)
        return TrainingState(
            model, optimizer, schedule, torch.amp.GradScaler(enabled=_precision() == "float16")
        ), tokenizer

    def _height(self, step: int) -> float:
        warm = max(1, self.steps // 10)
        return min((step + 1) / warm, max(0.0, (self.steps - step) / max(1, self.steps - warm)))

    def _steps(self, until: float, on_progress: Callable[[TrainingProgress], None]) -> None:
        state, began, first = self.state, time.monotonic(), self.state.step
        loss = float("nan")
        for positions in self._order(first):
            newest = self._step(positions)
            state.losses.append(newest)
            loss = newest if loss != loss else (1 - _SMOOTHED) * loss + _SMOOTHED * newest
            state.step += 1
            scores = None
            if state.step % self.epoch_steps == 0 or state.step == self.steps:
                scores = self._look()
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
                    self._look()
                state.save(self.out / "training")
                return

    def _order(self, first: int) -> Iterator[list[int]]:
        """The batches of all steps from one on."""
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

    def _look(self) -> ReaderScores:
        """Read the dev pairs; weights that are the best so far become the folder's reader."""
        state, settings = self.state, self.settings
        reader = DPRReader(
            "in training", 0.0, state.model, self.tokenizer, window=self.window, longest_answer=settings.longest_answer
        )
        readings, _ = read_all(reader, self.dev)
        scores = score_readings(readings, best_theta(readings).theta)
        told = {"step": state.step, "mean_loss": fmean(state.losses), **scores.figures("dev_")}
        state.history.append(told)
        state.losses.clear()
        state.finished = state.step == self.steps
        self.tracked.figures({name: value for name, value in told.items() if name != "step"}, step=state.step)
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
    """What a GPU computes in: bfloat16 where it can, else float16; a CPU in float32."""
    import torch

    if not torch.cuda.is_available():
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
