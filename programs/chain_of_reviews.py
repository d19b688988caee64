"""Chain of Reviews, the control of Tree of Reviews."""

from __future__ import annotations

from typing import ClassVar

import dspy
from pydantic import Field

from ..retrieval import Passage
from ..signatures import AnswerStyle
from .path_search import Expansion, PathSearch, Reviewing, ReviewingSettings
from .tree import Node, ReasoningTree


class ChainOfReviewsSettings(ReviewingSettings):
    """How Chain of Reviews searches; the defaults are those of sections 4.3 and 4.4, and table 13.

    Attributes:
        expansion: as for Tree of Reviews; table 13 reviews with thoughts. "review" asks what the last paragraph adds,
            and a turn brings several: most chains are then rejected.
        k: how many paragraphs are retrieved in a turn.
        max_turns: how many turns of retrieval and review a question takes at most.
    """

    expansion: Expansion = "cot"
    k: int = Field(default=5, ge=1)
    max_turns: int = Field(default=3, ge=1)


class ChainOfReviews(Reviewing):
    """Chain of Reviews (Li et al., 2024, arXiv 2404.14464, section 4.4): one path, with every paragraph so far.

    The review and the fusion are those of Tree of Reviews; a single irrelevant paragraph can mislead every later
    review. A paragraph that the chain already holds is not added again.
    """

    name: ClassVar[str] = "chain-of-reviews"
    Settings = ChainOfReviewsSettings
    settings: ChainOfReviewsSettings
    judges_last = False

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Retrieve and review all paragraphs so far, until they are accepted or rejected."""
        widths = [self.settings.k] * self.settings.max_turns
        OnePath(self, tree, answer_style, widths).search()
        return self.fuse(tree, answer_style)


class OnePath(PathSearch):
    """The search on one path: what a turn finds is appended to it, and reviewed with all that was found before."""

    def open(self, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """Append the paragraphs that are new; return the chain's new end, nothing if there are none."""
        known, turn = {passage.id for passage in self.tree.passages()}, 1 if parent is None else parent.round + 1
        new = [passage for passage in found if passage.id not in known]
        if parent is not None and not new:
            self.tree.update(parent, ended="nothing retrieved")
        for passage in new:
            parent = self.tree.grow(parent, round=turn, query=query, source="passage", passage=passage)
        return [parent] if parent is not None and new else []
