"""The choice among candidates, made twice, by boosted trees that are read from JSON and computed with numpy."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, model_validator

from ...common.errors import CheckpointError
from ...common.files import write_atomically
from ...common.json_files import validate
from ...common.manifests import ManifestKind, json_hash
from ..lists import Array
from .features import FEATURES, features
from .pool import QuestionTerms, gather, ranks

FORMAT = 1
_SHIPPED = Path(__file__).with_name("choice.json").resolve()
_KIND = ManifestKind("choice of links", FORMAT, "calibrate again: questree calibrate-links", error=CheckpointError)
Seen = tuple[Array, Array]
"""The positions of candidates, rising, and their (candidates, features)."""
_SEEDS = 5
"""The best of the first choice, from which the second looks around."""


class Trees(BaseModel, frozen=True):
    """Regression trees whose sum is the log-odds that a candidate is wanted. Each node's left child is the next node.

    Attributes:
        base: added to the sum.
        roots: the first node of each tree.
        feature: of each node, the feature that it asks for; -1 for a leaf.
        right: of each node, its right child.
        number: of a leaf its value, of another node its threshold: what is above it goes to the right.
    """

    base: float
    roots: list[int]
    feature: list[int]
    right: list[int]
    number: list[float]

    @model_validator(mode="after")
    def _end(self) -> Trees:
        """Check that every way through the nodes ends: those of a foreign file must not be followed for ever."""
        count = len(self.number)
        children = zip(self.feature, self.right, range(count), strict=True)
        forward = all(feature < 0 or node < child < count for feature, child, node in children)
        rooted = all(0 <= root < count for root in self.roots)
        if not (forward and rooted and self.feature[-1:] == [-1] and max(self.feature) < FEATURES):
            raise ValueError("its trees name nodes or features that there are not")
        return self

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return np.array(self.feature, np.int32), np.array(self.right, np.int32), np.array(self.number, np.float32)

    def scores(self, numbers: Array) -> Array:
        """Return (candidates,) the sum of the trees for (candidates, features)."""
        feature, right, number = self._arrays
        node = np.broadcast_to(np.array(self.roots, np.int32), (len(numbers), len(self.roots)))
        row = np.arange(len(numbers))[:, None]
        while (asked := feature[node]).max(initial=-1) >= 0:
            further = np.where(numbers[row, asked] > number[node], right[node], node + 1)
            node = np.where(asked < 0, node, further)
        return np.asarray(self.base + number[node].sum(1))


class Choice(BaseModel, frozen=True):
    """What chooses among candidates, and a card that says what it was trained on and how well it chose.

    Attributes:
        first: sees how candidates are linked to the best by words.
        second: sees how they are linked to the best of the first.
    """

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

    def search(self, question: QuestionTerms, ranking: Array) -> tuple[Array, Array]:
        """Return the positions of the last candidates, best first, and their scores.

        The ranking holds the positions of the passages that the linked retriever found, best first.
        """
        if not len(ranking):
            return ranking, ranking
        found = look_first(question, ranking)
        first = self.first.scores(found[1])
        again = look_again(question, ranking, found[0], first)
        return best_first(again[0], self.second.scores(again[1]), found[0], first)


def look_first(question: QuestionTerms, ranking: Array) -> Seen:
    """Return the candidates around what the linked retriever found best, and their features."""
    return _look(question, ranking, ranking, 1 / (1 + np.arange(len(ranking))), question.seeds(ranking))


def look_again(question: QuestionTerms, ranking: Array, found: Array, scores: Array) -> Seen:
    """Return the candidates around those that have the best scores of the ones first found, and their features."""
    likely = 1 / (1 + np.exp(-scores))
    best = np.argsort(-likely, kind="stable")[:_SEEDS]
    return _look(question, ranking, found, likely, found[best], likely[best])


def _look(question: QuestionTerms, ranking: Array, found: Array, likely: Array, *seeds: Array) -> Seen:
    candidates = gather(question, found, *seeds)
    known = ranks(candidates.positions, found)
    prior = np.where(known < 0, 0, likely[known])
    return candidates.positions, features(question, candidates, ranks(candidates.positions, ranking), prior)


def best_first(positions: Array, scores: Array, found: Array, first: Array) -> tuple[Array, Array]:
    """Return the second positions, best first, of equals the earlier; and their scores: half of the first ones count.

    What was not found first has the lowest of the first scores.
    """
    rank = ranks(positions, found)
    scores = scores + 0.5 * np.where(rank < 0, first.min(), first[rank])
    order = np.argsort(-scores, kind="stable")
    return positions[order], scores[order]
