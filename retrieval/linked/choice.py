"""The choice among candidates: boosted trees in two stages, read from JSON and computed with numpy."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, model_validator

from ...common.errors import CheckpointError
from ...common.files import write_atomically
from ...common.json_files import validate
from ...common.manifests import ManifestKind, json_hash

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FORMAT, NUMBERS = 1, 56
"""The numbers of a candidate, as `questree.retrieval.linked.numbers` makes them."""
_KIND = ManifestKind("choice of links", FORMAT, "calibrate again: questree calibrate-links", error=CheckpointError)


class Trees(BaseModel):
    """Regression trees whose sum is the log-odds that a candidate is wanted. Each node's left child is the next node.

    Attributes:
        base: added to the sum.
        roots: the first node of each tree.
        feature: of each node, the number that it asks for; -1 for a leaf.
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
    def _hold_together(self) -> Trees:
        nodes = len(self.feature)
        if not (len(self.right) == len(self.number) == nodes and self.feature and self.feature[-1] == -1):
            raise ValueError("the lists of its nodes are not of one length")
        if any(not 0 <= root < nodes for root in self.roots) or not all(-1 <= one < NUMBERS for one in self.feature):
            raise ValueError("it names nodes or numbers that there are not")
        if any(
            one >= 0 and not node < child < nodes
            for node, (one, child) in enumerate(zip(self.feature, self.right, strict=True))
        ):
            raise ValueError("a child stands before its parent")
        return self

    def scores(self, numbers: Array) -> Array:
        """Return (candidates,) the sum of the trees for (candidates, numbers)."""
        import numpy as np

        feature, right, number = self._arrays
        node = np.broadcast_to(np.array(self.roots, np.int32), (len(numbers), len(self.roots))).copy()
        row = np.arange(len(numbers))[:, None]
        while (asked := feature[node]).max(initial=-1) >= 0:
            further = np.where(numbers[row, asked] > number[node], right[node], node + 1)
            node = np.where(asked < 0, node, further)
        scores: Array = self.base + number[node].sum(1)
        return scores

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        import numpy as np

        return np.array(self.feature, np.int32), np.array(self.right, np.int32), np.array(self.number, np.float32)


class Choice(BaseModel):
    """What chooses among candidates, in two stages, and its card.

    Attributes:
        first: sees how candidates are linked to the best by words.
        second: sees how they are linked to the best of the first stage.
        card: what it was trained on, and how well it chose there.
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
    def load(cls, file: Path) -> Choice:
        """Read a choice.

        Raises:
            CheckpointError: if it cannot be read, or is of another version.
        """
        return _KIND.read(file, lambda content: validate(cls, content))

    def save(self, file: Path) -> None:
        """Write the choice, whole or not at all."""
        write_atomically(file, self.model_dump_json() + "\n")


def shipped() -> Choice:
    """Return the choice that comes with questree."""
    return Choice.load(Path(__file__).with_name("choice.json").resolve())
