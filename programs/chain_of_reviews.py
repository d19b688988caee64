"""Chain of Reviews, the control of Tree of Reviews."""

from __future__ import annotations

from typing import ClassVar

import dspy
from pydantic import Field

from ..signatures import AnswerStyle
from .reviews import Expansion, Reviewing, ReviewingSettings
from .tree import Ended, Node, ReasoningTree


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
        query: str | None = tree.question
        guess: str | None = None
        last: Node | None = None
        for turn in range(1, self.settings.max_turns + 1):
            grown = self.lengthen(tree, last, query, turn, guess) if query else None
            if grown is None:
                break
            last, query, guess = self.review(tree, grown, answer_style)
        return self.fuse(tree, answer_style)

    def lengthen(
        self, tree: ReasoningTree, last: Node | None, query: str, turn: int, guess: str | None = None
    ) -> Node | None:
        """Append the paragraphs that the query found; return the chain's new end, or None if nothing new was found."""
        known = {passage.id for passage in tree.passages()}
        found = [passage for passage in self.search(query, guess, self.settings.k) if passage.id not in known]
        if not found:
            if last is not None:
                tree.update(last, ended="nothing retrieved")
            return None
        for passage in found:
            last = tree.grow(last, round=turn, query=query, source="passage", passage=passage)
        return last

    def review(self, tree: ReasoningTree, last: Node, answer_style: AnswerStyle) -> tuple[Node, str | None, str | None]:
        """Review the chain; return its end, and the query of the next search with a guess, if there are any."""
        question, passages = tree.question, tree.passages()
        tried = list(dict.fromkeys(node.query for node in tree.nodes))
        outcome = self.paragraph_review(question=question, answer_style=answer_style, passages=passages, tried=tried)
        action, query = self.action(outcome), None
        ended: Ended | None = None
        if action != "search":
            ended = "accepted" if action == "accept" else "rejected"
        elif last.round == self.settings.max_turns:
            ended = "full depth"
        else:
            query = self.expand(question, passages, outcome)
            ended = "no query" if query is None else None
        answer = outcome.answer if action == "accept" else None
        node = tree.update(last, review=outcome.review, action=action, answer=answer, next_query=query, ended=ended)
        return node, query, outcome.guess
