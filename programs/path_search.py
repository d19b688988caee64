"""The search along paths of paragraphs that Tree of Reviews and its control, Chain of Reviews, have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..common.text import text_or_none
from ..lm.call import call
from ..retrieval import Passage, Retriever
from ..retrieval.contracts import Similarity
from ..signatures import AnswerStyle
from ..signatures.reviews import CompleteParagraphs
from .evidence import (
    compare_words,
    evidence_pool,
    evidence_within,
    passages_within,
    ranked_passages,
    rejected_on_topic,
    rejected_passages,
    relevant_passages,
    united,
)
from .modules.reviews import (
    EvidenceFusion,
    Fusion,
    ParagraphReview,
    PathReview,
    ReviewOutcome,
    told_by,
)
from .program import MethodSettings, Program, answered
from .references import distinct, numbered
from .tree import Action, Ended, Node, ReasoningTree

Expansion = Literal["review", "direct", "cot", "mpc"]


class ReviewingSettings(MethodSettings):
    """How paragraphs are reviewed, searches expanded and evidence fused.

    Attributes:
        expansion: where the query of a search comes from (section 3.4): the review itself (direct), the review
            after some thoughts (cot), a missing paragraph that the LM writes from memory in a separate call (mpc),
            or a review that first lists the facts, and writes both query and missing paragraph (review).
        fusion: what the final answer is read from (section 3.3): what the accepted paths assert (analysis),
            their paragraphs (paragraph), or both (evidence).
        relevance_pruning: if off, the search continues from irrelevant paths as well.
        evidence_tokens: about how many tokens of evidence the final answer is read from.
        max_passages: how many paragraphs a prediction gives.
    """

    expansion: Expansion = "review"
    fusion: Fusion = "evidence"
    relevance_pruning: bool = True
    evidence_tokens: int = Field(default=4096, ge=1)
    max_passages: int = Field(default=15, ge=1)


class Reviewing(Program):
    """A program that reviews paragraphs, searches for what they lack, and fuses what it accepted."""

    settings: ReviewingSettings
    judges_last: ClassVar[bool]
    """Whether a review decides about the last paragraph of its path, or about all of them."""

    def __init__(self, retriever: Retriever | None = None, settings: ReviewingSettings | None = None):
        super().__init__(retriever, settings)
        settings = self.settings
        self.paragraph_review = (
            PathReview(self.judges_last)
            if settings.expansion == "review"
            else ParagraphReview(settings.expansion == "cot", self.judges_last)
        )
        if settings.expansion == "mpc":
            self.missing_paragraph = dspy.Predict(CompleteParagraphs)
        guesses = settings.preset == "best" and settings.fusion == "evidence"
        self.evidence_fusion = EvidenceFusion("guess" if guesses else settings.fusion)

    def expand(self, question: str, passages: list[Passage], outcome: ReviewOutcome) -> str | None:
        """Return the query of a search (section 3.4, effective expansion); None if the LM wrote none.

        With ``mpc`` it is the paragraph that the path lacks, written from memory (table 9). The paper's prompt also
        answers the question from it, and does not use that answer: ours does not ask for it.
        """
        if self.settings.expansion != "mpc":
            return outcome.next_query
        reply = call(self.missing_paragraph, drop="first", question=question, passages=numbered(passages))
        return text_or_none(reply.information)

    def retrieve_with(self, query: str, guess: str | None, k: int) -> list[Passage]:
        """Return what a query finds, together with the guess of the missing paragraph if there is one."""
        return self.retrieve(f"{query} {guess}" if guess else query, k)

    def fuse(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer from the evidence pool, as much of it as the token budget holds (section 3.3, evidence fusion).

        If the pool is empty, the answer is read from the paragraphs that were relevant but not enough; without such
        paragraphs the LM answers alone. With our review, rejected paragraphs are read as well: those on topic, or
        all if there are no others. No call is needed for a short answer from one piece whose facts keep a mark, or for
        a list, whose pieces are united.
        """
        settings, ours = self.settings, self.settings.expansion == "review"
        pool = evidence_pool(tree)
        read = evidence_within(pool, settings.evidence_tokens)
        passages = distinct([piece.passages for piece in read])
        if not pool:
            left = relevant_passages(tree)
            if ours:
                left = distinct([left, rejected_on_topic(tree)]) or rejected_passages(tree)
            passages = passages_within(left, settings.evidence_tokens)
        several = answer_style == "list" and bool(pool)
        alone = ours and settings.fusion == "evidence" and (several or len(pool) == 1) and answer_style != "long"
        piece = united(pool) if several else pool[0] if pool else None
        cited = (told_by(piece, tree.question) if piece and alone else None) or self.evidence_fusion(
            question=tree.question, answer_style=answer_style, evidence=read, passages=passages
        )
        limit = settings.max_passages
        found = ranked_passages(pool, cited.content, limit, self.similarity) if pool else passages[:limit]
        return answered(tree, *cited, passages=found, evidence=pool)

    @property
    def similarity(self) -> Similarity:
        """Return the function that compares texts: by the retriever's embeddings if it has any, else by words."""
        retriever = self.retriever
        if retriever is None or retriever.similarity is None:
            return compare_words
        by_embeddings = retriever.similarity

        def similarity(texts: Any, others: Any) -> Any:
            inputs, compare = {"texts": list(texts), "others": list(others)}, partial(by_embeddings, texts, others)
            return self.compare(retriever.name, inputs, list[list[float]], compare, remote=retriever.remote)

        return similarity


@dataclass(frozen=True)
class Visit:
    """A node's review and what followed from it."""

    outcome: ReviewOutcome
    action: Action
    ended: Ended | None
    query: str | None = None
    found: tuple[Passage, ...] = ()


class PathSearch:
    """The paper's search for the evidence of one question: depth first, one call after the other (section 3).

    Args:
        program: reviews, expands and retrieves.
        tree: grows.
        answer_style: that of the question.
        widths: how many paragraphs are retrieved at each level.
        repetitive_pruning: see `TreeOfReviewsSettings`.
    """

    def __init__(
        self,
        program: Reviewing,
        tree: ReasoningTree,
        answer_style: AnswerStyle,
        widths: Sequence[int],
        repetitive_pruning: bool = True,
    ):
        self.program, self.settings, self.tree, self.answer_style = program, program.settings, tree, answer_style
        self.widths, self.repetitive_pruning = widths, repetitive_pruning

    def search(self) -> None:
        """Search until every path is accepted, rejected or at full depth (section 3.1)."""
        self.search_below(None, self.tree.question)

    def search_below(self, parent: Node | None, query: str, guess: str | None = None) -> None:
        """Open a path under the parent for each paragraph that the query finds, and follow them all."""
        width = self.widths[parent.round if parent else 0]
        self.follow(self.open(parent, query, self.program.retrieve_with(query, guess, width)))

    def follow(self, nodes: list[Node]) -> None:
        """Review each node, and all nodes below it, before the next (section 3.2)."""
        for node in nodes:
            visit = self.visit(node)
            node = self.record(node, visit)
            if visit.query is not None:
                self.follow(self.open(node, visit.query, list(visit.found)))

    def visit(self, node: Node) -> Visit:
        """Review the node's path; if more is needed, find the query and retrieve with it (section 3.2)."""
        path, tried = self.tree.paragraphs_to(node), list(dict.fromkeys(node.query for node in self.tree.nodes))
        outcome: ReviewOutcome = self.program.paragraph_review(
            question=self.tree.question, answer_style=self.answer_style, passages=path, tried=tried
        )
        action = outcome.action
        if action == "reject" and not self.settings.relevance_pruning:
            action = "search"
        goes_on = self.answer_style == "list" and self.settings.expansion == "review" and outcome.next_query is not None
        if action == "reject" or (action == "accept" and not goes_on):
            return Visit(outcome, action, "accepted" if action == "accept" else "rejected")
        if stop := self.stop(node):
            return Visit(outcome, action, stop)
        query = self.program.expand(self.tree.question, path, outcome)
        if query is None:
            return Visit(outcome, action, "no query")
        level = min(node.round, len(self.widths) - 1)
        found = tuple(self.program.retrieve_with(query, outcome.guess, self.widths[level]))
        return Visit(outcome, action, None if found else "nothing retrieved", query, found)

    def stop(self, node: Node) -> Ended | None:
        """Return why no search starts from this node; None if one does."""
        return "full depth" if node.round == len(self.widths) else None

    def record(self, node: Node, visit: Visit) -> Node:
        """Write the review into the node and return it; an accepted node is evidence from now on."""
        return self.tree.update(
            node,
            review=visit.outcome.review,
            action=visit.action,
            answer=visit.outcome.answer if visit.action == "accept" else None,
            next_query=visit.query,
            ended="accepted" if visit.action == "accept" else visit.ended,
        )

    def open(self, parent: Node | None, query: str, found: list[Passage]) -> list[Node]:
        """Open a child for each paragraph found; return those that are not pruned (section 3.4)."""
        level, pruned = 1 if parent is None else parent.round + 1, self.pruning(parent)
        children = [
            self.tree.grow(parent, round=level, query=query, source="passage", passage=passage, ended=pruned(passage))
            for passage in found
        ]
        return [child for child in children if child.ended is None]

    def pruning(self, parent: Node | None) -> Callable[[Passage], Ended | None]:
        """Return a function that says why a paragraph opens no path here (section 3.4, repetitive pruning)."""
        known = {passage.id for passage in self.known(parent)} if self.repetitive_pruning else set()
        return lambda passage: "repeated" if passage.id in known else None

    def known(self, parent: Node | None) -> list[Passage]:
        """Return the paragraphs of the path to the parent, and of the evidence pool."""
        return distinct([self.tree.paragraphs_to(parent), *(piece.passages for piece in evidence_pool(self.tree))])
