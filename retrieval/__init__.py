"""Passages, and how they are found and read."""

from .contracts import Reader, Retriever, Span
from .passage import Passage, neutralise

__all__ = ["Passage", "Reader", "Retriever", "Span", "neutralise"]
