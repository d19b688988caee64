"""The methods as DSPy programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from ..lm.call import call as call
    from ..lm.parallel import run_parallel as run_parallel
    from ..lm.window import shown_of as shown_of
    from .blendfilter import BlendFilter as BlendFilter
    from .blendfilter import BlendFilterSettings as BlendFilterSettings
    from .chain_of_reviews import ChainOfReviews as ChainOfReviews
    from .chain_of_reviews import ChainOfReviewsSettings as ChainOfReviewsSettings
    from .demonstrations import note as note
    from .program import Program as Program
    from .program import answered as answered
    from .references import distinct as distinct
    from .references import numbered as numbered
    from .references import settle_marks as settle_marks
    from .references import supported_by as supported_by
    from .registry import PROGRAMS as PROGRAMS
    from .registry import REGISTRY as REGISTRY
    from .registry import allow as allow
    from .registry import build as build
    from .registry import build_kind as build_kind
    from .registry import saved_name as saved_name
    from .registry import takes_retriever as takes_retriever
    from .registry import variants as variants
    from .searchain import SearChain as SearChain
    from .searchain import SearChainSettings as SearChainSettings
    from .streams import Stream as Stream
    from .streams import stream as stream
    from .tree import Node as Node
    from .tree import ReasoningTree as ReasoningTree
    from .tree_of_reviews import TreeOfReviews as TreeOfReviews
    from .tree_of_reviews import TreeOfReviewsSettings as TreeOfReviewsSettings

__getattr__ = lazily(__name__)
