"""Modules: one LM call each, composed by the programs."""

from .chain_of_query import ChainOfQuery, CompletedChain, CorrectedChain
from .evidence_fusion import EvidenceFusion
from .knowledge import KnowledgeAnswer, KnowledgeFilter, QueryBlending, TopicNaming
from .paragraph_review import MissingParagraph, ParagraphReview
from .reading import LMReader
from .together import together
from .tracing import Tracing

__all__ = [
    "ChainOfQuery",
    "CompletedChain",
    "CorrectedChain",
    "EvidenceFusion",
    "KnowledgeAnswer",
    "KnowledgeFilter",
    "LMReader",
    "MissingParagraph",
    "ParagraphReview",
    "QueryBlending",
    "TopicNaming",
    "Tracing",
    "together",
]
