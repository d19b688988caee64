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

_SHIPPED = Path(__file__).with_name("choice.json").resolve()
_KIND = ManifestKind("choice of links", 1, "calibrate again: questree calibrate-links", error=CheckpointError)
_SEEDS = 5  # the best of the first choice, around which the second looks
_FIRST, _NEAR, _MOST = 5, 20, 12  # places that stay; how far down, and how many, are alike to the best by words
Seen = tuple[Array, Array]  # the positions of candidates, rising, and their (candidates, features)


class Trees(BaseModel, frozen=True):
    """Trees whose sum is the log-odds that a candidate is wanted. The left child of a node is the next node."""

    base: float  # added to the sum
    roots: list[int]  # the first node of each tree
    feature: list[int]  # of each node, the feature that it asks for; -1 for a leaf
    right: list[int]  # of each node, its right child
    number: list[float]  # of a leaf its value, of another node its threshold: what is above it goes to the right

    @model_validator(mode="after")
    def _end(self) -> Trees:
        """Check that every way through the nodes ends: those of a foreign file must not be followed for ever."""
        nodes = range(len(self.number))
        children = zip(self.feature, self.right, nodes, strict=True)
        forward = all(feature < 0 or node < child < len(nodes) for feature, child, node in children)
        if not (forward and {*self.roots} <= {*nodes} and self.feature[-1:] == [-1] and max(self.feature) < FEATURES):
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
    """What chooses among candidates, twice."""

    format: int = _KIND.format
    first: Trees  # sees how candidates are linked to the best by words
    second: Trees  # sees how they are linked to the best of the first
    card: dict[str, Any] = {}  # what it was trained on, and how well it chose

    @property
    def fingerprint(self) -> str:
        """Return what tells this choice from another."""
        return json_hash([self.first.model_dump(), self.second.model_dump()])[:16]

    @classmethod
    def load(cls, file: Path = _SHIPPED) -> Choice:
        """Read a choice, by default the one that comes with questree."""
        return _KIND.read(file, lambda content: validate(cls, content))

    def save(self, file: Path) -> None:
        """Write the choice, whole or not at all."""
        write_atomically(file, self.model_dump_json() + "\n")

    def search(self, question: QuestionTerms, ranking: Array) -> tuple[Array, Array]:
        """Return positions, best first, and their scores, given those that the linked retriever found, best first."""
        if not len(ranking):
            return ranking, ranking
        found, numbers = look(question, ranking)
        first = found, self.first.scores(numbers)
        again, numbers = look(question, ranking, *first)
        return with_alike(question, ranking, *best_first(again, self.second.scores(numbers), *first))


def look(question: QuestionTerms, ranking: Array, *first: Array) -> Seen:
    """Return the candidates around the best of a ranking, or around the best of what was first found and scored."""
    if first:
        found, likely = first[0], 1 / (1 + np.exp(-first[1]))
        best = np.argsort(-likely, kind="stable")[:_SEEDS]
        candidates = gather(question, found, found[best], likely[best])
    else:
        found, likely = ranking, 1 / (1 + np.arange(len(ranking)))
        candidates = gather(question, found, question.seeds(ranking))
    prior = np.append(likely, 0)[ranks(candidates.positions, found)]
    return candidates.positions, features(question, candidates, ranks(candidates.positions, ranking), prior)


def best_first(positions: Array, scores: Array, found: Array, first: Array) -> tuple[Array, Array]:
    """Return positions, best first, and their scores, to which half of the first ones is added, or of their lowest."""
    scores = scores + 0.5 * np.append(first, first.min())[ranks(positions, found)]
    order = np.argsort(-scores, kind="stable")
    return positions[order], scores[order]


def with_alike(question: QuestionTerms, ranking: Array, positions: Array, scores: Array) -> tuple[Array, Array]:
    """Return positions and scores in which what is like the best passage by words stands after the first five.

    A question that names no title describes what it asks for, and several passages may fit: people of one profession.
    Like the best are those that hold its telling words. Without this, what one of them is linked to hides the others.
    """
    if len(question.titles):
        return positions, scores
    near = np.sort(ranking[:_NEAR])
    held = question.weights(near) > 0
    told = held[near == ranking[0]] * question.idf
    alike = near[(held >= (told > told.max(initial=0) / 2)).all(1)]
    last = scores[:_FIRST][-1]
    raised = np.isin(positions, alike) & (scores < last) & (1 < len(alike) <= _MOST)
    order = np.argsort(-np.where(raised, last, scores), kind="stable")
    return positions[order], np.where(raised, last, scores)[order]
