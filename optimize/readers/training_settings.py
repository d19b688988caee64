"""How a reader is trained."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class TrainingSettings(BaseModel):
    """How a reader is trained; the defaults suit a few thousand questions and a small encoder.

    The options of `questree train-reader` follow from the first six fields.

    Attributes:
        negatives: DPR: 23.
        learning_rate: it rises over the first tenth and falls to nothing, by ``max_steps`` if they are given.
        absolute: see `reader_loss`.
        longest_answer: tokens of a span, at most (DPR: 10).
        checkpoint_every: steps from one checkpoint to the next.
        seed: of the heads, the order, the negatives and dropout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=3, ge=1, description="Times that each question is seen.")
    batch_size: int = Field(default=4, ge=1, description="Questions in a step.")
    learning_rate: float = Field(default=1e-4, gt=0, description="Highest learning rate.")
    negatives: int = Field(default=2, ge=1, description="Passages that do not answer, for each question.")
    window: int = Field(default=256, ge=16, description="Tokens of question, title and text that are read.")
    max_steps: int | None = Field(
        default=None, ge=1, description="Stop after so many steps. Default: after all epochs."
    )
    absolute: float = Field(default=1.0, ge=0)
    longest_answer: int = Field(default=10, ge=1)
    checkpoint_every: int = Field(default=200, ge=1)
    seed: int = 0
