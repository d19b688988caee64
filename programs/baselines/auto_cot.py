"""Auto-CoT."""

from __future__ import annotations

from .cot import ChainOfThought


class AutoCoT(ChainOfThought):
    """Auto-CoT (Zhang et al., ICLR 2023, arXiv 2210.03493): chain of thought whose demonstrations make themselves.

    What is its own happens in compilation: the optimizer ``auto-cot`` clusters the training questions and lets the LM
    reason about one of each cluster, and is what this program is compiled with unless another is named. Uncompiled,
    it is ``cot``.
    """

    name = "auto-cot"
    default_optimizer = "auto-cot"
