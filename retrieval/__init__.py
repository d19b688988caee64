"""Passages, and how they are found and read."""

from .contracts import DuplicateCheck, Reader, Retriever, Span
from .passage import Passage, neutralise

__all__ = ["DuplicateCheck", "Passage", "Reader", "Retriever", "Span", "neutralise"]
