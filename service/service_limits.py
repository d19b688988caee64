"""How much a service takes on at a time."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ServiceLimits(BaseModel):
    """How much is taken on at a time; the first five are options of `questree serve`, with the help below them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    max_running: int = Field(default=256, ge=1)
    """Questions that are answered at the same time."""
    max_queued: int = Field(default=1024, ge=0)
    """Questions that wait for their turn; further ones are refused (503)."""
    per_client: int = Field(default=16, ge=1)
    """Questions of one address, running or queued; further ones are refused (429)."""
    follow_ups: bool = True
    """Restate a chat's follow-up by an LM call; else refuse it."""
    stream_lm: bool = True
    """Show an answer as the LM writes it; an LM whose server refuses that is asked without a stream by itself."""
    seconds: float = 600.0
    """That a question may take, its wait included; a request may ask for fewer."""
    patience: float = 15.0
    """Seconds that a question of the Ask page goes on while nobody looks at it."""
