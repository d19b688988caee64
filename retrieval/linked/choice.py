"""The choice among candidates: boosted trees in two stages, read from JSON and computed with numpy."""

from __future__ import annotations

from functools import cached_property
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

FORMAT = 1
_SHIPPED = Path(__file__).with_name("choice.json").resolve()
_KIND = ManifestKind("choice of links", FORMAT, "calibrate again: questree calibrate-links", error=CheckpointError)


class Trees(BaseModel):
    """Regression trees whose sum is the log-odds that a candidate is wanted. Each node's left child is the next node.

    Attributes:
        base: added to the sum.
        roots: the first node of each tree.
        feature: of each node, the feature that it asks for; -1 for a leaf.
        right: of each node, its right child.
        number: of a leaf its value, of another node its threshold: what is above it goes to the right.
    """

    model_config = ConfigDict(frozen=True)

    base: float
    roots: list[int]
    feature: list[int]
    right: list[int]
    number: list[float]

    @model_validator(mode="after")
    def _end(self) -> Trees:
        """Check that every way through the nodes ends: those of a foreign file must not be followed for ever."""
        nodes = len(self.number)
        children = zip(self.feature, self.right, range(nodes), strict=True)
        if not (
            all(feature < 0 or node < child < nodes for feature, child, node in children)
            and all(0 <= root < nodes for root in self.roots)
            and -1 == self.feature[nodes - 1] <= max(self.feature) < FEATURES
        ):
            raise ValueError("its trees name nodes or features that there are not")
        return self

    def scores(self, features: Array) -> Array:
        """Return (candidates,) the sum of the trees for (candidates, features)."""
        feature, right, number = self._arrays
        node = np.broadcast_to(np.array(self.roots, np.int32), (len(features), len(self.roots))).copy()
        row = np.arange(len(features))[:, None]
        while (asked := feature[node]).max(initial=-1) >= 0:
            further = np.where(features[row, asked] > number[node], right[node], node + 1)
            node = np.where(asked < 0, node, further)
        return np.asarray(self.base + number[node].sum(1))

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return np.array(self.feature, np.int32), np.array(self.right, np.int32), np.array(self.number, np.float32)


class Choice(BaseModel):
    """What chooses among candidates, in two stages, and a card that says what it was trained on and how well it chose.

    Attributes:
        first: sees how candidates are linked to the best by words.
        second: sees how they are linked to the best of the first stage.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    first: Trees
    second: Trees
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
