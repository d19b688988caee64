"""Modules: one LM call each, composed by the programs."""

from .chain_of_query import ChainOfQuery, CompletedChain, CorrectedChain
from .reading import LMReader
from .tracing import Tracing

__all__ = ["ChainOfQuery", "CompletedChain", "CorrectedChain", "LMReader", "Tracing"]
