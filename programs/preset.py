"""Presets: each method as its paper has it, or with the defaults that we know to be better."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator

from .program import ProgramSettings

Preset = Literal["best", "paper"]


class MethodSettings(ProgramSettings):
    """Settings of a method that can be had as its paper has it.

    Attributes:
        preset: "paper" takes the values of `PAPER` for every setting that is not given.
    """

    PAPER: ClassVar[dict[str, Any]] = {}

    preset: Preset = "best"

    @model_validator(mode="before")
    @classmethod
    def _fill_in_paper(cls, given: Any) -> Any:
        """Add the paper's values to what was given."""
        return {**cls.PAPER, **given} if isinstance(given, dict) and given.get("preset") == "paper" else given
