"""The choice among candidates: a small network in two stages, read from JSON and computed with numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from ...common.errors import CheckpointError
from ...common.files import write_atomically
from ...common.json_files import validate
from ...common.manifests import ManifestKind, json_hash
from ..lists import Array
from .features import FEATURES

FORMAT = 2
_SHIPPED = Path(__file__).with_name("choice.json").resolve()
_KIND = ManifestKind("choice of links", FORMAT, "calibrate again: questree calibrate-links", error=CheckpointError)


class Network(BaseModel):
    """A network of one hidden layer, whose value is the log-odds that a candidate is wanted.

    Attributes:
        into: (features + 1, hidden) the weights of the features, and last the bias, of each hidden unit.
        out: (hidden + 1,) the weights of the hidden units, and last the bias.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    into: list[list[float]]
    out: list[float]

    @model_validator(mode="after")
    def _fits(self) -> Network:
        """Check that a foreign file holds the weights of our features."""
        if {*map(len, self.into)} != {len(self.out) - 1} or len(self.into) != FEATURES + 1:
            raise ValueError(f"its weights are not those of {FEATURES} features")
        return self

    def scores(self, features: Array) -> Array:
        """Return (candidates,) the log-odds for (candidates, features)."""
        into, out = np.array(self.into), np.array(self.out)
        return np.asarray(np.maximum(features @ into[:-1] + into[-1], 0) @ out[:-1] + out[-1])


class Choice(BaseModel):
    """What chooses among candidates, in two stages, and a card that says what it was trained on and how well it chose.

    Attributes:
        first: sees how candidates are linked to the best by words.
        second: sees how they are linked to the best of the first stage.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    first: Network
    second: Network
    card: dict[str, Any] = {}

    @property
    def fingerprint(self) -> str:
        """Return what tells this choice from another."""
        return json_hash([self.first.model_dump(), self.second.model_dump()])[:16]

    @classmethod
    def load(cls, file: Path = _SHIPPED) -> Choice:
        """Read a choice, by default the one that comes with questree.

        Raises:
            CheckpointError: if it cannot be read, or is of another version.
        """
        return _KIND.read(file, lambda content: validate(cls, content))

    def save(self, file: Path) -> None:
        """Write the choice, whole or not at all."""
        write_atomically(file, self.model_dump_json() + "\n")
