"""The methods as DSPy programs."""

from .blendfilter import BlendFilter, BlendFilterSettings
from .chain_of_reviews import ChainOfReviews, ChainOfReviewsSettings
from .demonstrations import select_demonstrations
from .program import Program, answered
from .registry import PROGRAMS, build
from .searchain import SearChain, SearChainSettings
from .tree import Node, ReasoningTree
from .tree_of_reviews import TreeOfReviews, TreeOfReviewsSettings
from .variants import variants

__all__ = [
    "PROGRAMS",
    "BlendFilter",
    "BlendFilterSettings",
    "ChainOfReviews",
    "ChainOfReviewsSettings",
    "Node",
    "Program",
    "ReasoningTree",
    "SearChain",
    "SearChainSettings",
    "TreeOfReviews",
    "TreeOfReviewsSettings",
    "answered",
    "build",
    "select_demonstrations",
    "variants",
]
