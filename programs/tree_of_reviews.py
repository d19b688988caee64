"""Tree of Reviews."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..common.errors import QuestreeError
from ..retrieval import Retriever
from ..signatures import AnswerStyle
from .reviews import Reviewing, ReviewingSettings
from .tree import ReasoningTree
from .tree_of_reviews_best import BoundedTreeSearch
from .tree_of_reviews_paper import TreeSearch


class TreeOfReviewsSettings(ReviewingSettings):
    """How Tree of Reviews searches; the defaults are those of section 4.4.

    Attributes:
        widths: how many paragraphs are retrieved at each level; as many levels as there are widths.
        repetitive_pruning: if off, a paragraph of the evidence pool, or of the path itself, opens a path again.
        order: "depth-first" is the paper's, one call after the other. "level" reviews all paths of a level at the
            same time: a question takes as long as its longest path, but some calls more, since a path cannot use
            evidence that its neighbours find at the same time. The default is the paper's, so that calls and recall
            are comparable with its figures; it costs no time if many questions run side by side.
        semantic_pruning: beyond the paper, None for off: a paragraph is pruned if its similarity, by the retriever's
            embeddings, to a paragraph of the evidence pool or of its path is as high as this.
        set_pruning: beyond the paper: of paths with the same paragraphs in another order, one is reviewed. So a
            paragraph of the path itself opens none, also without ``repetitive_pruning``.
        enough_agreement: beyond the paper, None for off: the search ends when so many pieces of evidence agree.
        second_search: beyond the paper: as long as every paragraph is rejected, a query that a review of them wrote is
            searched for, as the question was, up to as many searches as there are levels; depth first, what two
            rejected siblings ask for is searched for before the others are reviewed; and a query that a review wrote at
            full depth is searched for as well, for the fusion, which reads the best paragraph of it.
        max_calls: beyond the paper, None for off: how many LM calls a question may take, including the fusion.
            Calls repeated because a reply could not be parsed are not counted.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "expansion": "mpc",
        "set_pruning": False,
        "enough_agreement": None,
        "second_search": False,
    }

    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(5, 3, 3), min_length=1)
    repetitive_pruning: bool = True
    order: Literal["depth-first", "level"] = "depth-first"
    semantic_pruning: float | None = None
    set_pruning: bool = True
    enough_agreement: int | None = Field(default=1, ge=1)
    second_search: bool = True
    max_calls: int | None = Field(default=None, ge=1)

    @property
    def beyond_paper(self) -> bool:
        """Return whether the search has a part that the paper's has not."""
        parts = (self.set_pruning, self.second_search, self.enough_agreement, self.semantic_pruning, self.max_calls)
        return self.order != "depth-first" or any(part not in (None, False) for part in parts)


class TreeOfReviews(Reviewing):
    """Tree of Reviews (Li et al., 2024, arXiv 2404.14464): each paragraph is reviewed, and leads on by itself.

    The root is the question, every other node one paragraph. A path, from the root to a node, is reviewed as one
    whole: rejected, accepted as evidence, or searched on from, which opens a child for each paragraph found.

    Where the paper leaves open, or we differ:

    - By default the review lists the facts, and writes the query and the missing paragraph in the same call; the
      search ends with the first evidence, and begins once more where nothing led on. ``preset=paper`` has a call for
      each, searches on, and gives up.
    - Missing-paragraph completion goes with the review of direct expansion, so that these two differ only in the query;
      CoT expansion has a review with thoughts, which are the analysis of a path; else it is what the review gives.
    - Repetitive pruning compares the paragraphs that a search found with the evidence pool, and also with the path
      itself: a completion often finds the paragraph again that it completes.
    - What the answer is read from if nothing was accepted: see `Reviewing.fuse`.
    - The order of the evidence, if the token budget does not hold all of it: see `evidence_pool`.

    Args:
        retriever: finds the paragraphs.
        settings: see `TreeOfReviewsSettings` and `ReviewingSettings`.

    Raises:
        QuestreeError: if paragraphs are to be pruned by meaning, and the retriever has no embeddings.
    """

    name: ClassVar[str] = "tree-of-reviews"
    Settings = TreeOfReviewsSettings
    settings: TreeOfReviewsSettings
    judges_last = True

    def __init__(self, retriever: Retriever | None = None, settings: TreeOfReviewsSettings | None = None):
        super().__init__(retriever, settings)
        if self.settings.semantic_pruning is not None and (retriever is None or retriever.similarity is None):
            raise QuestreeError(
                "semantic_pruning compares paragraphs by the retriever's embeddings, and "
                f"{retriever.name if retriever else 'no retriever'} offers none (`similarity` is None); "
                "use a neural index, or leave semantic_pruning out."
            )
        self.way = BoundedTreeSearch if self.settings.beyond_paper else TreeSearch

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search until every path has ended, then answer from the evidence (section 3.1)."""
        self.way(self, tree, answer_style).search()
        return self.fuse(tree, answer_style)
